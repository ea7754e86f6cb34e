package llm

import (
	"testing"
)

// state is what events have made of a completion.
type state struct {
	text, stop, model, blocks string
	token                     bool
	err                       bool
}

func after(w Wire, data []byte, quick bool) state {
	var a completion
	b, err := a.addBlock(0)
	if err != nil {
		panic(err)
	}
	b.tool = true
	var s state
	if quick {
		var e error
		s.token, e = a.event(w, "", data)
		s.err = e != nil
	} else if w == Anthropic {
		var e error
		s.token, e = a.anthropic("", data)
		s.err = e != nil
	} else {
		var e error
		s.token, e = a.openai(data)
		s.err = e != nil
	}
	s.text, s.stop, s.model = a.text.String(), a.stop, a.model
	for _, b := range a.blocks {
		s.blocks += b.id + "|" + b.name + "|" + b.args.String() + "\n"
	}
	return s
}

var commonEvents = []struct {
	wire  Wire
	data  string
	quick bool // read without encoding/json
}{
	{OpenAI, `{"id":"x","object":"chat.completion.chunk","created":1760000000,"model":"m","choices":[{"index":0,"delta":{"content":"word "},"logprobs":null,"finish_reason":null}],"usage":null}`, true},
	{OpenAI, `{"choices":[{"delta":{"role":"assistant","content":""}}]}`, true},
	{OpenAI, `{"choices":[{"delta":{"content":"a\n\"\\\/\b\f\r\t\u00e9\ud83c\udf0d\ud83c x\udf0d\ud800\u0041"}}]}`, true},
	{OpenAI, `{"choices":[{"delta":{"content":"Grüße 🌍"},"finish_reason":"stop"}]}`, true},
	{OpenAI, ` { "choices" : [ { "delta" : { "reasoning_content" : "hm" , "content" : null } , "x" : [1,-2.5e+3,{"a":[]},true,false] } ] } `, true},
	{OpenAI, `{"choices":[]}`, true},
	{OpenAI, "{\"choices\":[{\"delta\":{\"content\":\"bad \xff utf\"}}]}", false},
	{OpenAI, `{"choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`, false},
	{OpenAI, `{"choices":[{"delta":{"content":"a","content":"b"}}]}`, false},
	{OpenAI, `{"Choices":[{"delta":{"content":"a"}}]}`, false},
	{OpenAI, `{"choices":[{"delta":{"content":"a"}}],"error":{"type":"x"}}`, false},
	{OpenAI, `{"choices":[{"delta":{"refusal":"no"}}]}`, false},
	{OpenAI, `{"choices":[],"usage":{"prompt_tokens":3}}`, false},
	{OpenAI, `{"choices":[{"delta":{"content":1}}]}`, false},
	{OpenAI, `{"choices":[{"delta":{"content":"a"}}]`, false},
	{OpenAI, `{"choices":[{"delta":{"content":"a"}}]}}`, false},
	{OpenAI, `{"choices":[{"index":00,"delta":{"content":"a"}}]}`, false},
	{OpenAI, `{"choices":[{"delta":{"content":"a\x"}}]}`, false},
	{OpenAI, `{"created":01,"choices":[]}`, false},
	{Anthropic, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"wo\trd "}}`, true},
	{Anthropic, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`, true},
	{Anthropic, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`, true},
	{Anthropic, `{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"lost"}}`, false},
	{Anthropic, `{"type":"ping"}`, false},
	{Anthropic, `{"type":"error","error":{"type":"overloaded_error"}}`, false},
}

// What the quick way reads it reads as encoding/json does, and it does read what
// most of a stream consists of.
func TestCommonEvents(t *testing.T) {
	for _, r := range commonEvents {
		if quick, slow := after(r.wire, []byte(r.data), true), after(r.wire, []byte(r.data), false); quick != slow {
			t.Errorf("%s %s:\nquick %+v\nslow  %+v", r.wire, r.data, quick, slow)
		}
		var a completion
		if _, err := a.addBlock(0); err != nil {
			t.Fatal(err)
		}
		if _, handled := a.common(r.wire, []byte(r.data)); handled != r.quick {
			t.Errorf("%s %s: read quickly %v, want %v", r.wire, r.data, handled, r.quick)
		}
	}
}

func FuzzCommonEvents(f *testing.F) {
	for _, r := range commonEvents {
		f.Add([]byte(r.data), r.wire == Anthropic)
	}
	f.Fuzz(func(t *testing.T, data []byte, anthropic bool) {
		w := OpenAI
		if anthropic {
			w = Anthropic
		}
		if quick, slow := after(w, data, true), after(w, data, false); quick != slow {
			t.Fatalf("%s %q:\nquick %+v\nslow  %+v", w, data, quick, slow)
		}
	})
}

func TestCommonEventsAllocateNothing(t *testing.T) {
	for _, r := range commonEvents {
		if !r.quick {
			continue
		}
		var a completion
		if _, err := a.addBlock(0); err != nil {
			t.Fatal(err)
		}
		a.text.Grow(1 << 20)
		a.blocks[0].args.Grow(1 << 20)
		a.model, a.stop = "m", "stop"
		data := []byte(r.data)
		want := 0.0
		if len(a.scan.stop) > 0 {
			want = 1
		}
		got := testing.AllocsPerRun(100, func() { a.common(r.wire, data) })
		if r.wire == OpenAI && len(a.scan.stop) > 0 {
			want = 1 // the reason why it ended, once per stream
		}
		if got > want {
			t.Errorf("%s: %v allocations, want %v", r.data, got, want)
		}
	}
}
