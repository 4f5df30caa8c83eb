package compact_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/agent/compact"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/anthropic"
	"github.com/dsh-go/dsh/llm/openai"
	"github.com/dsh-go/dsh/session"
)

// server is a provider on loopback with a small window. It refuses conversations
// that its protocol does not allow.
type server struct {
	write func(w io.Writer, text, call string) // an answer in the provider's form
	check func(body map[string]any) error      // what the protocol asks of a request

	mu      sync.Mutex
	refused int
	invalid []error
}

const serverWindow = 40_000 // bytes

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > serverWindow {
		s.refused++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"prompt is too long: 99 tokens > 9 maximum"}}`)
		return
	}
	var body map[string]any
	err := json.Unmarshal(text, &body)
	if err == nil {
		err = s.check(body)
	}
	if err != nil {
		s.invalid = append(s.invalid, err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	messages, _ := body["messages"].([]any)
	last, _ := json.Marshal(messages[len(messages)-1])
	switch {
	case strings.Contains(string(text), "You compress the history"):
		s.write(w, keeps(strings.ReplaceAll(string(last), `\n`, " ")), "")
	case strings.Contains(string(last), "tool_result") || strings.Contains(string(last), `"role":"tool"`):
		s.write(w, "Done.", "")
	default:
		s.write(w, "I look.", `{"size":9000}`)
	}
}

// openAI checks that results follow the calls, each one.
func openAI(body map[string]any) error {
	waiting := map[string]bool{}
	for i, one := range body["messages"].([]any) {
		m := one.(map[string]any)
		if m["role"] == "tool" {
			id, _ := m["tool_call_id"].(string)
			if !waiting[id] {
				return fmt.Errorf("message %d answers %q, which nobody called", i, id)
			}
			delete(waiting, id)
			continue
		}
		if len(waiting) > 0 {
			return fmt.Errorf("message %d comes before the results of %v", i, waiting)
		}
		calls, _ := m["tool_calls"].([]any)
		for _, c := range calls {
			waiting[c.(map[string]any)["id"].(string)] = true
		}
	}
	return nil
}

// anthropicRules checks that the roles take turns, the user first, and that all
// results are at the beginning of the message behind the calls.
func anthropicRules(body map[string]any) error {
	waiting, role := 0, "user"
	for i, one := range body["messages"].([]any) {
		m := one.(map[string]any)
		if m["role"] != role {
			return fmt.Errorf("message %d is of the %v, not of the %s", i, m["role"], role)
		}
		role = map[string]string{"user": "assistant", "assistant": "user"}[role]
		blocks, _ := m["content"].([]any)
		calls, results := 0, 0
		for _, b := range blocks {
			switch b.(map[string]any)["type"] {
			case "tool_use":
				calls++
			case "tool_result":
				results++
			}
		}
		if results != waiting {
			return fmt.Errorf("message %d has %d results for %d calls", i, results, waiting)
		}
		waiting = calls
	}
	return nil
}

func writeOpenAI(w io.Writer, text, call string) {
	say := func(delta any, finish string) {
		choice := map[string]any{"index": 0, "delta": delta}
		if finish != "" {
			choice["finish_reason"] = finish
		}
		line, _ := json.Marshal(map[string]any{"choices": []any{choice}})
		_, _ = fmt.Fprintf(w, "data: %s\n\n", line)
	}
	say(map[string]any{"role": "assistant", "content": text}, "")
	if call != "" {
		say(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "c", "type": "function", "function": map[string]any{"name": "big", "arguments": call}}}}, "")
		say(map[string]any{}, "tool_calls")
	} else {
		say(map[string]any{}, "stop")
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

func writeAnthropic(w io.Writer, text, call string) {
	say := func(kind string, more map[string]any) {
		more["type"] = kind
		line, _ := json.Marshal(more)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, line)
	}
	block := func(i int, start, delta map[string]any) {
		say("content_block_start", map[string]any{"index": i, "content_block": start})
		say("content_block_delta", map[string]any{"index": i, "delta": delta})
		say("content_block_stop", map[string]any{"index": i})
	}
	say("message_start", map[string]any{"message": map[string]any{"id": "m", "type": "message", "role": "assistant", "content": []any{}, "model": "m", "usage": map[string]any{"input_tokens": 0, "output_tokens": 0}}})
	block(0, map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": text})
	reason := "end_turn"
	if call != "" {
		reason = "tool_use"
		block(1, map[string]any{"type": "tool_use", "id": "c", "name": "big", "input": map[string]any{}}, map[string]any{"type": "input_json_delta", "partial_json": call})
	}
	say("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason}, "usage": map[string]any{"output_tokens": 1}})
	say("message_stop", map[string]any{})
}

// serve serves until the test has ended.
func serve(t *testing.T, h http.Handler) string {
	ts := httptest.NewServer(h)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return ts.URL
}

// TestProviders: the adapters, on loopback: what a provider refuses as too large is
// made smaller and sent again, and every conversation is one that its protocol allows.
func TestProviders(t *testing.T) {
	for _, c := range []struct {
		name    string
		server  *server
		adapter func(url string) (llm.Adapter, error)
	}{
		{"openai", &server{write: writeOpenAI, check: openAI}, func(url string) (llm.Adapter, error) { return openai.New(openai.Options{BaseURL: url}) }},
		{"anthropic", &server{write: writeAnthropic, check: anthropicRules}, func(url string) (llm.Adapter, error) { return anthropic.New(anthropic.Options{BaseURL: url}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.New(t)
			adapter, err := c.adapter(serve(t, c.server))
			if err != nil {
				t.Fatal(err)
			}
			k.Adapter("loopback", adapter)
			a := k.Start(agent.Options{
				Model:   llm.Config{Provider: "loopback", Model: "m", MaxTokens: 100},
				Plugins: []*cordis.Plugin{bigTool(k), compact.Plugin()},
			})
			for i := range 12 {
				completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
			}
			s := c.server
			if s.refused == 0 || len(s.invalid) > 0 {
				t.Errorf("%d refused, invalid: %v", s.refused, s.invalid)
			}
			if got := outcomes(t, a.Session()); got["full done"] == 0 || got["full failed"] > 0 {
				t.Error(got)
			}
			if text := surface(a.Session()); !strings.Contains(text, "KEEP-0") {
				t.Errorf("forgotten: %s", text)
			}
		})
	}
}

// TestScript: a script plays the model, and the summary.
func TestScript(t *testing.T) {
	k := agenttest.New(t)
	k.Script(`
steps:
- text: "` + strings.Repeat("Well. ", 500) + `"
- failures: [{code: CONTEXT_WINDOW_EXCEEDED, message: "too long"}]
  expect: {lastUser: "And now?", messages: 2}
  text: "Now this."
purposes:
  compact:
  - expect: {lastUser: "[the person]"}
    text: "## Task\nBe well."
`)
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{compact.Plugin()}})
	completed(k, a, "How are you?")
	completed(k, a, "And now?")
	if got := outcomes(t, a.Session()); got["full done"] != 1 {
		t.Error(got)
	}
	if n := len(agenttest.Payloads[session.LLMCall](t, a.Session().Log)); n != 1 {
		t.Errorf("%d one-shot requests", n)
	}
}
