// Calls the endpoint with the official OpenAI and Anthropic SDKs and prints
// what they returned, as JSON on one line. The cases come in LLMTEST_CASES.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const base = process.env.LLMTEST_BASE;
const cases = JSON.parse(process.env.LLMTEST_CASES);
const openai = new OpenAI({ apiKey: "sk-sdk-key", baseURL: base + "/v1", maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: "sk-sdk-key", baseURL: base, maxRetries: 0 });

async function callOpenAI(model, stream) {
  const messages = [{ role: "user", content: "hello there" }];
  const call = { model, messages, max_tokens: 100 };
  const got = { text: "", tools: [], usage: null, stop: null };
  const count = (u) => u && [u.prompt_tokens, u.completion_tokens, u.prompt_tokens_details.cached_tokens];
  if (!stream) {
    const whole = await openai.chat.completions.create(call);
    const choice = whole.choices[0];
    got.text = choice.message.content ?? "";
    got.tools = (choice.message.tool_calls ?? []).map((t) => [t.id, t.function.name, t.function.arguments]);
    got.usage = count(whole.usage);
    got.stop = choice.finish_reason;
    return got;
  }
  const chunks = await openai.chat.completions.create({ ...call, stream: true, stream_options: { include_usage: true } });
  for await (const chunk of chunks) {
    got.usage = count(chunk.usage) ?? got.usage;
    const choice = chunk.choices[0];
    if (!choice) continue;
    got.text += choice.delta.content ?? "";
    got.stop = choice.finish_reason ?? got.stop;
    for (const t of choice.delta.tool_calls ?? []) {
      const slot = (got.tools[t.index] ??= ["", "", ""]);
      slot[0] += t.id ?? "";
      slot[1] += t.function.name ?? "";
      slot[2] += t.function.arguments ?? "";
    }
  }
  return got;
}

async function callAnthropic(model, stream) {
  const call = { model, max_tokens: 100, messages: [{ role: "user", content: "hello there" }] };
  const m = stream ? await anthropic.messages.stream(call).finalMessage() : await anthropic.messages.create(call);
  return {
    text: m.content.filter((b) => b.type === "text").map((b) => b.text).join(""),
    tools: m.content.filter((b) => b.type === "tool_use").map((b) => [b.id, b.name, JSON.stringify(b.input)]),
    usage: [m.usage.input_tokens, m.usage.output_tokens, m.usage.cache_read_input_tokens],
    stop: m.stop_reason,
  };
}

const results = [];
for (const c of cases) {
  const call = c.wire === "openai" ? callOpenAI : callAnthropic;
  try {
    results.push({ ...(await call(c.model, c.stream)), error: null });
  } catch (e) {
    results.push({ text: "", tools: [], usage: null, stop: null, error: [e.constructor.name, e.status ?? null] });
  }
}
console.log(JSON.stringify(results));
