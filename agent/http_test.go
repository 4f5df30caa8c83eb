package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/llm/openai"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
	"github.com/dsh-go/dsh/tool"
)

// sse is an answer of the chat completions API: a text, or calls of tools by name.
func sse(text string, calls ...agenttest.Called) []byte {
	var out bytes.Buffer
	say := func(format string, args ...any) {
		fmt.Fprintf(&out, "data: "+format+"\n\n", args...)
	}
	for _, piece := range strings.SplitAfter(text, " ") {
		if piece != "" {
			say(`{"choices":[{"index":0,"delta":{"content":%q}}]}`, piece)
		}
	}
	finish := "stop"
	for i, c := range calls {
		finish = "tool_calls"
		say(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}}]}`, i, c.ID, c.Name, c.Arguments)
	}
	say(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, finish)
	say("[DONE]")
	return out.Bytes()
}

// overHTTP registers a provider "http" that speaks to a loopback server, and returns
// a model of it.
func overHTTP(t testing.TB, k *agenttest.Kit, url string) llm.Config {
	t.Helper()
	a, err := openai.New(openai.Options{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	k.Adapter("http", a)
	return llm.Config{Provider: "http", Model: "m"}
}

// TestPrefix: over 50 steps in which tools come and go, what was sent before stays
// byte for byte: all messages always, the tools up to the one that changed. The
// session is resumed in the middle.
func TestPrefix(t *testing.T) {
	const steps = 50
	store, err := jsonl.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k := agenttest.NewWith(t, agenttest.Options{Store: store})
	var n atomic.Int64
	server := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		i := int(n.Add(1))
		answer := sse("done")
		if i%(steps/2) != 0 {
			answer = sse("step "+fmt.Sprint(i), agenttest.Called{ID: fmt.Sprint("c", i), Name: "change", Arguments: fmt.Sprintf(`{"n":%d}`, i)})
		}
		llmtest.Play("text/event-stream", answer)(w, r)
	})
	model := overHTTP(t, k, server.URL)
	var a *agent.Agent
	var mounted []*cordis.Fiber
	change := changing(&a, &mounted)
	s := k.Session()
	for life := range 2 {
		if life == 1 {
			if s, err = store.Open(k.Context(), s.Meta().ID); err != nil {
				t.Fatal(err)
			}
			k.Own(s)
		}
		mounted = nil
		a = k.Start(agent.Options{Session: s, Model: model, Plugins: []*cordis.Plugin{tools(change, echo("beta"))}})
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		if err := errors.Join(a.Close(k.Context()), s.Close(k.Context())); err != nil {
			t.Fatal(err)
		}
	}
	bodies := server.Bodies()
	if len(bodies) != steps {
		t.Fatalf("%d requests", len(bodies))
	}
	checkPrefixes(t, bodies)
	sent := k.Recorder.Sent(s.Meta().ID)
	for i := range sent {
		if !bytes.Equal(sent[i].Body, bodies[i]) {
			t.Errorf("request %d: the server got other bytes than were recorded", i)
		}
	}
	// The log on disk gives every body too, without the process that wrote it.
	log, err := store.Read(k.Context(), s.Meta().ID)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Rebuild(t, session.NewSession(log, nil, log.Len()), sent)
}

// changing is a tool that mounts and unmounts others.
func changing(a **agent.Agent, mounts *[]*cordis.Fiber) *tool.Definition {
	number := 0
	return define("change", func(ctx context.Context, x *tool.Exec) (string, error) {
		var p struct{ N int }
		if err := json.Unmarshal(x.Arguments, &p); err != nil {
			return "", err
		}
		switch {
		case p.N%3 == 0:
			number++
			c := tool.WithMount((*a).Context(), tool.Mount{Number: number, ID: fmt.Sprint("dyn-", number), Plugin: "p"})
			f, err := c.Mount(tools(echo(fmt.Sprint("zz", 100-number)), echo(fmt.Sprint("aa", number))), nil)
			if err == nil {
				err = f.Await(ctx)
			}
			*mounts = append(*mounts, f)
			return "mounted", err
		case p.N%7 == 0 && len(*mounts) > 0:
			at := p.N % len(*mounts)
			_, err := (*mounts)[at].Dispose(ctx)
			*mounts = slices.Delete(*mounts, at, at+1)
			return "unmounted", err
		}
		return "ok", nil
	})
}

// checkPrefixes holds each request against the one before.
func checkPrefixes(t *testing.T, bodies [][]byte) {
	t.Helper()
	type body struct{ Messages, Tools []json.RawMessage }
	var before body
	for i, text := range bodies {
		var now body
		if err := json.Unmarshal(text, &now); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if same := common(before.Messages, now.Messages); same != len(before.Messages) {
				t.Errorf("request %d: of %d messages %d are the same", i, len(before.Messages), same)
			}
			// Tools are a list to which mounts add at the end, so that at most what
			// follows the first difference moves.
			same := common(before.Tools, now.Tools)
			if same < min(len(before.Tools), len(now.Tools)) && len(now.Tools) > len(before.Tools) {
				t.Errorf("request %d: a mount changed the tools before it", i)
			}
			if len(now.Tools) < len(before.Tools) && !within(now.Tools, before.Tools) {
				t.Errorf("request %d: an unmount moved other tools", i)
			}
		}
		before = now
	}
}

// within says whether a list is another one with some elements left out.
func within(a, b []json.RawMessage) bool {
	for _, e := range b {
		if len(a) > 0 && bytes.Equal(a[0], e) {
			a = a[1:]
		}
	}
	return len(a) == 0
}

// common is how many elements are the same from the front.
func common(a, b []json.RawMessage) int {
	n := 0
	for n < len(a) && n < len(b) && bytes.Equal(a[n], b[n]) {
		n++
	}
	return n
}

// TestServerFaults: what servers do, the loop survives.
func TestServerFaults(t *testing.T) {
	retry := agent.Config{Retry: llm.Retry{Max: 2, Base: time.Millisecond, Limit: 2 * time.Second}}
	for _, c := range []struct {
		name    string
		answers []http.HandlerFunc
		end     session.EndKind
		code    string
	}{
		{"rateLimited", []http.HandlerFunc{status(429, `{"error":{"message":"slow down"}}`, "Retry-After", "1")}, session.EndCompleted, ""},
		{"overloaded", []http.HandlerFunc{status(529, "overloaded"), status(503, "")}, session.EndCompleted, ""},
		{"cut", []http.HandlerFunc{llmtest.Play("text/event-stream", sse("half an answer")[:60], []byte{})}, session.EndCompleted, ""},
		{"errorWithin200", []http.HandlerFunc{llmtest.Play("text/event-stream", []byte("data: {\"error\":{\"message\":\"gpu fell off\",\"type\":\"server_error\"}}\n\n"))}, session.EndCompleted, ""},
		{"key", []http.HandlerFunc{status(401, `{"error":{"message":"bad key"}}`)}, session.EndError, llm.CodeAuth},
		{"context", []http.HandlerFunc{status(400, `{"error":{"message":"maximum context length is 10 tokens","code":"context_length_exceeded"}}`)}, session.EndError, llm.CodeContextWindow},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.NewWith(t, agenttest.Options{Agents: retry})
			var n atomic.Int64
			server := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				if i := int(n.Add(1)) - 1; i < len(c.answers) {
					c.answers[i](w, r)
					return
				}
				llmtest.Play("text/event-stream", sse("ok"))(w, r)
			})
			end := k.Run(k.Start(agent.Options{Model: overHTTP(t, k, server.URL)}), "go")
			if end.Kind != c.end || c.code != "" && end.Error.Code != c.code {
				t.Errorf("end = %+v, error %v", end, end.Error)
			}
		})
	}
}

func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

// TestCancelOverHTTP: a cancellation ends the request at the server too.
func TestCancelOverHTTP(t *testing.T) {
	k := agenttest.New(t)
	gone := make(chan struct{})
	begun := make(chan struct{})
	server := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"well\"}}]}\n\n"))
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-r.Context().Done()
		close(gone)
	})
	a := k.Start(agent.Options{Model: overHTTP(t, k, server.URL)})
	_ = a.Followup("go")
	<-begun
	a.Cancel(agent.Cause{Kind: agent.CauseUser}, false)
	<-gone
	k.Idle(a)
	wantEnd(t, k.End(a), session.EndAborted)
}

// TestManyAgents: 200 agents stream at once from one server, which answers none
// before all have asked, and none waits for another.
func TestManyAgents(t *testing.T) {
	const n = 200
	k := agenttest.New(t)
	var asked atomic.Int64
	all := make(chan struct{})
	server := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == n {
			close(all)
		}
		select {
		case <-all:
		case <-r.Context().Done():
			return
		}
		llmtest.Play("text/event-stream", sse("a few words of an answer"))(w, r)
	})
	model := overHTTP(t, k, server.URL)
	agents := make([]*agent.Agent, n)
	for i := range agents {
		agents[i] = k.Start(agent.Options{Model: model})
	}
	for _, a := range agents {
		if err := a.Followup("go"); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range agents {
		k.Idle(a)
		wantEnd(t, k.End(a), session.EndCompleted)
	}
}
