# Calls the endpoint with the official OpenAI and Anthropic SDKs and prints
# what they returned, as JSON on one line. The cases come in LLMTEST_CASES.
import json
import os

import anthropic
import openai

base = os.environ["LLMTEST_BASE"]
cases = json.loads(os.environ["LLMTEST_CASES"])
openai_client = openai.OpenAI(api_key="sk-sdk-key", base_url=base + "/v1", max_retries=0)
anthropic_client = anthropic.Anthropic(api_key="sk-sdk-key", base_url=base, max_retries=0)


def openai_usage(u):
    return u and [u.prompt_tokens, u.completion_tokens, u.prompt_tokens_details.cached_tokens]


def call_openai(model, stream):
    call = dict(model=model, messages=[{"role": "user", "content": "hello there"}], max_tokens=100)
    got = {"text": "", "tools": [], "usage": None, "stop": None}
    if not stream:
        whole = openai_client.chat.completions.create(**call)
        choice = whole.choices[0]
        got["text"] = choice.message.content or ""
        got["tools"] = [[t.id, t.function.name, t.function.arguments] for t in choice.message.tool_calls or []]
        got["usage"] = openai_usage(whole.usage)
        got["stop"] = choice.finish_reason
        return got
    chunks = openai_client.chat.completions.create(**call, stream=True, stream_options={"include_usage": True})
    for chunk in chunks:
        got["usage"] = openai_usage(chunk.usage) or got["usage"]
        for choice in chunk.choices:
            got["text"] += choice.delta.content or ""
            got["stop"] = choice.finish_reason or got["stop"]
            for t in choice.delta.tool_calls or []:
                while len(got["tools"]) <= t.index:
                    got["tools"].append(["", "", ""])
                slot = got["tools"][t.index]
                slot[0] += t.id or ""
                slot[1] += t.function.name or ""
                slot[2] += t.function.arguments or ""
    return got


def call_anthropic(model, stream):
    call = dict(model=model, max_tokens=100, messages=[{"role": "user", "content": "hello there"}])
    if stream:
        with anthropic_client.messages.stream(**call) as events:
            m = events.get_final_message()
    else:
        m = anthropic_client.messages.create(**call)
    return {
        "text": "".join(b.text for b in m.content if b.type == "text"),
        "tools": [[b.id, b.name, json.dumps(b.input, separators=(",", ":"))] for b in m.content if b.type == "tool_use"],
        "usage": [m.usage.input_tokens, m.usage.output_tokens, m.usage.cache_read_input_tokens],
        "stop": m.stop_reason,
    }


results = []
for c in cases:
    call = call_openai if c["wire"] == "openai" else call_anthropic
    try:
        results.append({**call(c["model"], c["stream"]), "error": None})
    except Exception as e:
        status = getattr(e, "status_code", None)
        results.append({"text": "", "tools": [], "usage": None, "stop": None, "error": [type(e).__name__, status]})
print(json.dumps(results))
