-- An id of its own for each call; what wrk saw, as JSON in the last line.
local n = 100000000
local session = os.getenv("SESSION")
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = os.getenv("ACCEPT")
wrk.headers["Mcp-Protocol-Version"] = os.getenv("PROTOCOL")
if session ~= "" then wrk.headers["Mcp-Session-Id"] = session end

function request()
  n = n + 1
  return wrk.format(nil, nil, nil,
    '{"jsonrpc":"2.0","id":' .. n .. ',"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}')
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"calls":%d,"errors":%d,"p50_s":%g,"p99_s":%g}\n', summary.requests,
    e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(50) / 1e6, latency:percentile(99) / 1e6))
end
