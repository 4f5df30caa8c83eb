package killtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// message is one of a request, as far as it is checked.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []toolCall      `json:"tool_calls"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// call is a tool call that the model makes.
type call struct{ name, arguments string }

// A model is a server that plays its rounds: how many answers with calls a history
// has says which comes next. After the last round it says the end.
type model struct {
	*httptest.Server
	rounds [][]call
	pause  time.Duration // between chunks

	mu      sync.Mutex
	reached func(where string) // told of every boundary: request, chunk, answered
	refused []string           // why histories were
	bodies  [][]byte           // of the requests
}

const (
	theEnd = "All of it is done: ünïcödé."
	// chunkSize cuts through runes.
	chunkSize = 7
)

func newModel(t *testing.T, pause time.Duration, rounds [][]call) *model {
	m := &model{rounds: rounds, pause: pause, reached: func(string) {}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

// sent returns the bodies of all requests so far, and why some were refused.
func (m *model) sent() (bodies [][]byte, refused []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.bodies), slices.Clone(m.refused)
}

// requests is how many there were so far.
func (m *model) requests() int {
	bodies, _ := m.sent()
	return len(bodies)
}

// at installs what is told of boundaries.
func (m *model) at(f func(where string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reached = f
}

func (m *model) tell(where string) {
	m.mu.Lock()
	f := m.reached
	m.mu.Unlock()
	f(where)
}

func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Stream   bool      `json:"stream"`
		Messages []message `json:"messages"`
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was killed while it sent
	}
	err = json.Unmarshal(body, &request)
	if err == nil && !request.Stream {
		err = fmt.Errorf("not a stream")
	}
	if err == nil {
		err = check(request.Messages)
	}
	m.mu.Lock()
	m.bodies = append(m.bodies, body)
	id := fmt.Sprintf("call_%d_", len(request.Messages)) // no two of a history
	if err != nil {
		m.refused = append(m.refused, err.Error())
	}
	m.mu.Unlock()
	if err != nil {
		http.Error(w, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error"}}`, err), http.StatusBadRequest)
		return
	}
	m.tell("request")
	w.Header().Set("Content-Type", "text/event-stream")
	m.answer(w, id, m.next(request.Messages))
	m.tell("answered")
}

// next is the round that the history has not had.
func (m *model) next(history []message) []call {
	had := 0
	for _, one := range history {
		if len(one.ToolCalls) > 0 {
			had++
		}
	}
	if had >= len(m.rounds) {
		return nil
	}
	return m.rounds[had]
}

// answer streams a round in small chunks.
func (m *model) answer(w http.ResponseWriter, id string, round []call) {
	send := func(delta map[string]any, finish any) {
		chunk, err := json.Marshal(map[string]any{
			"id": "c", "object": "chat.completion.chunk", "model": "m", "created": 1,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
		})
		if err != nil {
			panic(err)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk) // the reader may be dead
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		m.tell("chunk")
		time.Sleep(m.pause)
	}
	text, finish := theEnd, "stop"
	if len(round) > 0 {
		text, finish = "Next I use tools.", "tool_calls"
	}
	for part := range slices.Chunk([]rune(text), chunkSize) {
		send(map[string]any{"role": "assistant", "content": string(part)}, nil)
	}
	for i, c := range round {
		send(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": fmt.Sprint(id, i), "type": "function", "function": map[string]any{"name": c.name, "arguments": ""},
		}}}, nil)
		for part := range slices.Chunk([]rune(c.arguments), 8*chunkSize) {
			send(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": string(part)}}}}, nil)
		}
	}
	send(map[string]any{}, finish)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

// check says what a strict provider has against a history.
func check(history []message) error {
	var open []string // calls that wait for results
	for i, one := range history {
		where := fmt.Sprintf("message %d (%s)", i, one.Role)
		if one.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("%s: the calls %v have no results", where, open)
		}
		switch one.Role {
		case "system":
			if i > 0 {
				return fmt.Errorf("%s: not at the beginning", where)
			}
		case "user":
			if len(one.Content) <= len(`""`) {
				return fmt.Errorf("%s: no content", where)
			}
		case "assistant":
			if len(one.Content) <= len(`""`) && len(one.ToolCalls) == 0 {
				return fmt.Errorf("%s: neither content nor calls", where)
			}
			for _, c := range one.ToolCalls {
				if c.ID == "" || c.Type != "function" || c.Function.Name == "" || !json.Valid([]byte(c.Function.Arguments)) || slices.Contains(open, c.ID) {
					return fmt.Errorf("%s: call %+v", where, c)
				}
				open = append(open, c.ID)
			}
		case "tool":
			at := slices.Index(open, one.ToolCallID)
			if at < 0 {
				return fmt.Errorf("%s: a result of %q, which waits for none", where, one.ToolCallID)
			}
			open = slices.Delete(open, at, at+1)
		default:
			return fmt.Errorf("%s: no such role", where)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the calls %v have no results", open)
	}
	if last := history[len(history)-1].Role; last != "user" && last != "tool" {
		return fmt.Errorf("the last message is of the %s", last)
	}
	return nil
}

// TestCheck: the model refuses what a provider would.
func TestCheck(t *testing.T) {
	const user, asks, result = `{"role":"user","content":"a"}`, `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"n","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"r"}`
	for text, fine := range map[string]bool{
		user:                             true,
		user + "," + asks + "," + result: true,
		user + "," + asks:                false,
		user + "," + asks + "," + user:   false,
		user + "," + result:              false,
		user + "," + asks + "," + result + "," + result:                     false,
		user + `,{"role":"assistant","content":"x"}`:                        false,
		user + `,{"role":"assistant","content":""},` + user:                 false,
		user + "," + strings.Replace(asks, `"{}"`, `"{"`, 1) + "," + result: false,
	} {
		var history []message
		if err := json.Unmarshal([]byte("["+text+"]"), &history); err != nil {
			t.Fatal(err)
		}
		if err := check(history); (err == nil) != fine {
			t.Errorf("%s: %v", text, err)
		}
	}
}
