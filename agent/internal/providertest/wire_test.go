package providertest

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/anthropic"
	"github.com/dsh-go/dsh/llm/openai"
)

// idle is when a stream of these tests counts as stalled.
const idle = time.Second

// A wire is how a provider streams.
type wire struct {
	adapter func(url string) (llm.Adapter, error)
	// text and call are events of an answer, the i-th block of it; end is the last.
	text func(i int, text string) []byte
	call func(i int, c agenttest.Called) []byte
	end  func(calls bool) []byte
	// fault is an error of the type in the middle of a stream.
	fault func(kind string) []byte
	// types are the names of faults: of one that passes, and of one that stays.
	passes, stays string
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string
	return string(b)
}

func data(format string, args ...any) []byte {
	return fmt.Appendf(nil, "data: "+format+"\n\n", args...)
}

var wires = map[string]wire{
	"openai": {
		adapter: func(url string) (llm.Adapter, error) {
			return openai.New(openai.Options{BaseURL: url, Idle: idle})
		},
		text: func(_ int, text string) []byte {
			return data(`{"choices":[{"index":0,"delta":{"content":%s}}]}`, quote(text))
		},
		call: func(i int, c agenttest.Called) []byte {
			return data(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]}}]}`,
				i, quote(c.ID), quote(c.Name), quote(c.Arguments))
		},
		end: func(calls bool) []byte {
			reason := map[bool]string{true: "tool_calls", false: "stop"}[calls]
			return append(data(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, reason), data("[DONE]")...)
		},
		fault:  func(kind string) []byte { return data(`{"error":{"message":"no","type":%q}}`, kind) },
		passes: "server_error", stays: "invalid_request_error",
	},
	"anthropic": {
		adapter: func(url string) (llm.Adapter, error) {
			return anthropic.New(anthropic.Options{BaseURL: url, Idle: idle})
		},
		text: func(i int, text string) []byte {
			return block(i, `{"type":"text","text":""}`, `{"type":"text_delta","text":`+quote(text)+`}`)
		},
		call: func(i int, c agenttest.Called) []byte {
			return block(i, `{"type":"tool_use","id":`+quote(c.ID)+`,"name":`+quote(c.Name)+`,"input":{}}`, `{"type":"input_json_delta","partial_json":`+quote(c.Arguments)+`}`)
		},
		end: func(calls bool) []byte {
			reason := map[bool]string{true: "tool_use", false: "end_turn"}[calls]
			return append(named("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+reason+`"},"usage":{"output_tokens":2}}`), named("message_stop", `{"type":"message_stop"}`)...)
		},
		fault: func(kind string) []byte {
			return named("error", `{"type":"error","error":{"type":"`+kind+`","message":"no"}}`)
		},
		passes: "overloaded_error", stays: "invalid_request_error",
	},
}

func named(name, text string) []byte { return []byte("event: " + name + "\ndata: " + text + "\n\n") }

// block is a whole content block; the first is preceded by the beginning of the message.
func block(i int, start, delta string) []byte {
	var out []byte
	if i == 0 {
		out = named("message_start", `{"type":"message_start","message":{"id":"m","role":"assistant","usage":{"input_tokens":10,"output_tokens":1}}}`)
	}
	out = append(out, named("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, start))...)
	out = append(out, named("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, delta))...)
	return append(out, named("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))...)
}

// says is a whole answer that is a text.
func (w wire) says(text string) []byte { return append(w.text(0, text), w.end(false)...) }

// calls is a whole answer of calls.
func (w wire) calls(calls ...agenttest.Called) []byte {
	var out []byte
	for i, c := range calls {
		out = append(out, w.call(i, c)...)
	}
	return append(out, w.end(true)...)
}

func forEachWire(t *testing.T, do func(t *testing.T, w wire)) {
	for name, w := range wires {
		t.Run(name, func(t *testing.T) { t.Parallel(); do(t, w) })
	}
}
