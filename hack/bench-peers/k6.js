// An id of its own for each call; what k6 saw, as JSON in the last line.
import http from 'k6/http';
import exec from 'k6/execution';
import { Counter } from 'k6/metrics';

const bad = new Counter('bad');
const callers = Number(__ENV.CALLERS), rate = Number(__ENV.RATE);
const scenario = rate > 0
  ? { executor: 'constant-arrival-rate', rate, timeUnit: '1s', duration: __ENV.FOR, preAllocatedVUs: callers, maxVUs: Number(__ENV.MOST) }
  : { executor: 'constant-vus', vus: callers, duration: __ENV.FOR };
export const options = { scenarios: { calls: { ...scenario, gracefulStop: '5s' } }, summaryTrendStats: ['p(50)', 'p(99)'] };

const headers = { 'Content-Type': 'application/json', Accept: __ENV.ACCEPT, 'Mcp-Protocol-Version': __ENV.PROTOCOL };
if (__ENV.SESSION) headers['Mcp-Session-Id'] = __ENV.SESSION;

let n = 0;
export default function () {
  const id = exec.vu.idInTest * 1000000 + n++;
  const answer = http.post(__ENV.URL, `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`, { headers });
  if (answer.status !== 200) bad.add(1);
}

export function handleSummary({ metrics }) {
  const value = (metric, key) => (metrics[metric] ? metrics[metric].values[key] : 0);
  return {
    stdout: '\n' + JSON.stringify({
      calls: value('http_reqs', 'count'), errors: value('bad', 'count'), dropped: value('dropped_iterations', 'count'),
      p50_s: value('http_req_duration', 'p(50)') / 1000, p99_s: value('http_req_duration', 'p(99)') / 1000,
    }) + '\n',
  };
}
