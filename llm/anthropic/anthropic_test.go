package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/sse"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/lossless"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func adapter(t testing.TB, url string, change ...func(*Options)) *Adapter {
	t.Helper()
	opt := Options{BaseURL: url, Key: func() (string, error) { return "sk-secret", nil }, Idle: 20 * time.Second}
	for _, c := range change {
		c(&opt)
	}
	a, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func request() *llm.Request {
	return &llm.Request{Config: llm.Config{Provider: "p", Model: "m"}, Messages: []llm.Message{llm.UserText("hi")}}
}

func ask(t testing.TB, a *Adapter) llm.Answer {
	t.Helper()
	_, ans, err := llmtest.Collect(a.Stream(context.Background(), request()))
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

func decode(body []byte) (llm.Answer, error) {
	_, a, err := llmtest.Collect(func(yield func(llm.Chunk) bool) {
		d := newDecoder(llm.NewEmitter(yield))
		d.end(sse.Read(bytes.NewReader(body), d.event))
	})
	return a, err
}

// TestRecorded: what real servers sent, over a real connection and in every
// mechanical variant, is read as the index of the recordings says.
func TestRecorded(t *testing.T) {
	for _, r := range llmtest.Recorded(t, "ant", "ant-ns") {
		t.Run(strings.ReplaceAll(r.File, "/", "."), func(t *testing.T) {
			variants, kind := llmtest.Variants(r.Body), "text/event-stream"
			if r.Wire == "ant-ns" {
				variants, kind = map[string][][]byte{"asItIs": {r.Body}}, "application/json"
			}
			for name, pieces := range variants {
				t.Run(name, func(t *testing.T) {
					s := llmtest.Serve(t, llmtest.Play(kind, pieces...))
					compare(t, ask(t, adapter(t, s.URL)), r)
				})
			}
			t.Run("everyCut", func(t *testing.T) { cuts(t, r) })
		})
	}
}

// cuts: a stream that is cut before it said why it ended is never an answer.
func cuts(t *testing.T, r llmtest.Recording) {
	end := bytes.Index(r.Body, []byte("event: message_delta"))
	if end < 0 {
		t.Skip("it has no end to be cut before")
	}
	for cut := 0; cut < end; cut += 1 + end/80 {
		a, err := decode(r.Body[:cut])
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if a.Failure == nil || !a.Failure.Retryable() {
			t.Fatalf("cut at %d of %d: reason %s, failure %v", cut, len(r.Body), a.Reason, a.Failure)
		}
	}
}

func compare(t *testing.T, got llm.Answer, r llmtest.Recording) {
	t.Helper()
	want := *r.Expect
	type call struct{ ID, Name, Args string }
	var calls, wanted []call
	var reasoning string
	signature, redacted := 0, 0
	for _, b := range got.Content {
		switch b.Type {
		case llm.ReasoningBlock:
			reasoning += string(b.Text)
			signature += len(b.Signature)
			if b.Redacted != "" {
				redacted++
			}
		case llm.CallBlock:
			c := call{b.ID, b.Name, string(b.Arguments)}
			if c.Args == "" {
				c.Args = "{}"
			}
			calls = append(calls, c)
		}
	}
	for _, c := range want.Tools {
		if w, err := lossless.Parse([]byte(c.Args)); err == nil && r.Wire == "ant-ns" { // the index wrote arguments that are no string its own way
			for i := range calls {
				if v, err := lossless.Parse([]byte(calls[i].Args)); err == nil && calls[i].ID == c.ID && lossless.Equal(v, w) {
					c.Args = calls[i].Args
				}
			}
		}
		wanted = append(wanted, call{c.ID, c.Name, c.Args})
	}
	if want.Starts == 2 && len(want.Tools) == 2 { // the index lists what was on the wire; the second message is the answer
		wanted, want.Reasoning, want.SignatureLen = wanted[1:], "Let me call the tool.", len("sig-second")
	}
	if d := cmp.Diff(want.Text, llm.JoinText(got.Content)); d != "" {
		t.Errorf("text -want +got\n%s", d)
	}
	if d := cmp.Diff(want.Reasoning, reasoning); d != "" {
		t.Errorf("reasoning -want +got\n%s", d)
	}
	if d := cmp.Diff(wanted, calls); d != "" {
		t.Errorf("calls -want +got\n%s", d)
	}
	if signature != want.SignatureLen || redacted != want.Redacted {
		t.Errorf("%d bytes of signatures, %d redacted; want %d, %d", signature, redacted, want.SignatureLen, want.Redacted)
	}
	finish, code := string(got.Reason), ""
	if got.Failure != nil {
		code = got.Failure.Code
	}
	wantFinish, wantCode := map[string]string{"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool-calls", "max_tokens": "max-tokens", "refusal": "error"}[want.Finish], ""
	switch {
	case want.Finish == "refusal":
		wantCode = llm.CodeRefusal
	case want.Failed():
		wantFinish, wantCode = "error", llm.CodeServer
	case want.Finish == "end_turn" && want.Text == "":
		wantFinish, wantCode = "error", llm.CodeEmpty
	}
	if finish != wantFinish || code != wantCode {
		t.Errorf("finish %s %s (%v), want %s %s", finish, code, got.Failure, wantFinish, wantCode)
	}
	n := func(key string) int64 { f, _ := want.Usage[key].(float64); return int64(f) }
	u := llm.Usage{Input: n("input_tokens"), Output: n("output_tokens"), CacheRead: n("cache_read_input_tokens"), CacheWrite: n("cache_creation_input_tokens")}
	if got.Usage == nil || *got.Usage != u {
		t.Errorf("usage %+v, want %+v", got.Usage, u)
	}
}

func TestNotThisAPI(t *testing.T) {
	for name, body := range map[string]string{
		"legacyComplete": "event: completion\r\ndata: {\"type\":\"completion\",\"completion\":\" Light\",\"stop_reason\":null }\r\n\r\n",
		"nothing":        "",
	} {
		t.Run(name, func(t *testing.T) {
			a, err := decode([]byte(body))
			if err != nil || a.Failure == nil || a.Failure.Code != llm.CodeStreamClosed {
				t.Errorf("failure %v, %v", a.Failure, err)
			}
		})
	}
	for _, body := range []string{`{"id":"x"}`, `[]`, "<html>", "data: {nope}\n\ndata: {}\n\n"} {
		if a, err := decode([]byte(body)); err != nil || a.Failure == nil || a.Failure.Code != llm.CodeMalformed {
			t.Errorf("%s: failure %v, %v", body, a.Failure, err)
		}
	}
}

func event1(json string) []byte { return []byte("data: " + json + "\n\n") }

func TestBadConnections(t *testing.T) {
	start := event1(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	say := event1(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é"}}`)
	at := bytes.Index(say, []byte("é")) + 1
	overloaded := event1(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	for _, c := range []struct {
		name, code, text string
		pieces           [][]byte
	}{
		{"stall", llm.CodeTimeout, "é", [][]byte{start, say, nil}},
		{"cut", llm.CodeStreamClosed, "é", [][]byte{start, say, {}}},
		{"cutInRune", llm.CodeStreamClosed, "", [][]byte{start, say[:at], {}}},
		{"endInRune", llm.CodeStreamClosed, "", [][]byte{start, say[:at]}},
		{"overloaded", llm.CodeServer, "é", [][]byte{start, say, overloaded}},
		{"pause", "PAUSE_TURN", "é", [][]byte{start, say, event1(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}`)}},
		{"window", llm.CodeContextWindow, "é", [][]byte{start, say, event1(`{"type":"message_delta","delta":{"stop_reason":"model_context_window_exceeded"}}`)}},
		{"empty", llm.CodeEmpty, "", [][]byte{event1(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)}},
		{"unknownBlock", llm.CodeEmpty, "", [][]byte{say, event1(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.Serve(t, llmtest.Play("text/event-stream", c.pieces...))
			a := ask(t, adapter(t, s.URL, func(o *Options) { o.Idle = 300 * time.Millisecond }))
			if a.Failure == nil || a.Failure.Code != c.code || llm.JoinText(a.Content) != c.text {
				t.Errorf("failure %v, text %q; want %s, %q", a.Failure, llm.JoinText(a.Content), c.code, c.text)
			}
		})
	}
}

// TestInputAtStart: a gateway that sends the arguments with the start of the call.
func TestInputAtStart(t *testing.T) {
	a, err := decode(bytes.Join([][]byte{
		event1(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{"a": 1.0}}}`),
		event1(`{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`)}, nil))
	want := []llm.Block{{Type: llm.CallBlock, ID: "1", Name: "f", Arguments: `{"a": 1.0}`}}
	if d := cmp.Diff(want, a.Content); d != "" || err != nil {
		t.Errorf("%v -want +got\n%s", err, d)
	}
}

func TestEncode(t *testing.T) {
	r := &llm.Request{Config: llm.Config{Provider: "p", Model: "claude-next", Effort: "high"}, System: "sys",
		Tools: []llm.Tool{{Name: "f", Parameters: lossless.Obj(lossless.M("type", lossless.Str("object")))}, {Name: "g", Parameters: lossless.Obj()}}}
	r.Messages = []llm.Message{llm.UserText("hi"),
		{Role: llm.Assistant, Source: llm.Source{Provider: "p"}, Content: []llm.Block{
			{Type: llm.ReasoningBlock, Text: "hm", Signature: "sig+/="}, {Type: llm.ReasoningBlock, Redacted: "red"}, {Type: llm.ReasoningBlock, Text: "cut"},
			llm.Plain(" \n"), {Type: llm.CallBlock, ID: "1", Name: "f", Arguments: `{"é":1.0}`},
			{Type: llm.CallBlock, ID: "2", Name: "g"}, {Type: llm.CallBlock, ID: "3", Name: "g", Arguments: `{"a`}}},
		llm.Result("", "1", false, llm.Plain("one")), llm.UserText("wait"), llm.Result("", "2", true), llm.Result("", "3", true, llm.Plain("bad"))}
	const want = `{"model":"claude-next","max_tokens":32000,"stream":true,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},` +
		`"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{},"cache_control":{"type":"ephemeral"}}],` +
		`"system":[{"type":"text","text":"sys","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig+/="},{"type":"redacted_thinking","data":"red"},` +
		`{"type":"tool_use","id":"1","name":"f","input":{"é":1.0}},{"type":"tool_use","id":"2","name":"g","input":{}},{"type":"tool_use","id":"3","name":"g","input":{"invalid_json":"{\"a"}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"}]},` +
		`{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"(no output)"}],"is_error":true},` +
		`{"type":"tool_result","tool_use_id":"3","content":[{"type":"text","text":"bad"}],"is_error":true},{"type":"text","text":"wait","cache_control":{"type":"ephemeral"}}]}]}`
	got, err := adapter(t, URL).Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	r.Provider = "q"
	if got, _ := adapter(t, URL).Encode(r); bytes.Contains(got, []byte("sig")) || bytes.Contains(got, []byte(`"red"`)) {
		t.Errorf("another provider is sent the thinking\n%s", got)
	}
}

func TestEffort(t *testing.T) {
	for _, c := range []struct{ model, effort, want string }{
		{"claude-sonnet-4-5", "low", `"thinking":{"type":"enabled","budget_tokens":4096}`},
		{"claude-3-7-sonnet", "max", `"thinking":{"type":"enabled","budget_tokens":30976}`},
		{"claude-next", "off", `"thinking":{"type":"disabled"}`},
		{"claude-next", "", `"stream":true,"messages"`},
	} {
		r := request()
		r.Model, r.Effort = c.model, c.effort
		if got, err := adapter(t, URL).Encode(r); err != nil || !strings.Contains(string(got), c.want) {
			t.Errorf("%s %s: %s, %v; want %s in it", c.model, c.effort, got, err, c.want)
		}
	}
}

// TestThinkingSurvives: what a recorded stream brought goes back with its signature.
func TestThinkingSurvives(t *testing.T) {
	for _, rec := range llmtest.Recorded(t, "ant") {
		if rec.Expect.SignatureLen == 0 || rec.Expect.Failed() {
			continue
		}
		a, err := decode(rec.Body)
		if err != nil {
			t.Fatal(err)
		}
		r := request()
		r.Messages = append(r.Messages, a.Message("x", r.Config))
		body, err := adapter(t, URL).Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range a.Content {
			if sig, _ := json.Marshal(b.Signature); b.Signature != "" && !bytes.Contains(body, sig) {
				t.Errorf("%s: the signature is not in the next request", rec.File)
			}
		}
	}
}

// TestKeyIsHidden: no failure says the key, whatever way a server says it.
func TestKeyIsHidden(t *testing.T) {
	llmtest.Echo(t, func(t *testing.T, url string) llm.Adapter {
		return adapter(t, url, func(o *Options) { o.Key = func() (string, error) { return llmtest.EchoKey, nil } })
	})
}

func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, turns ...llmtest.Turn) llm.Adapter {
		next := make(chan llmtest.Turn, len(turns))
		for _, turn := range turns {
			next <- turn
		}
		s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			turn := <-next
			if r.Header.Get("X-Api-Key") != "sk-secret" || r.Header.Get("Anthropic-Version") == "" || r.URL.Path != "/v1/messages" || turn.Fail {
				w.WriteHeader(529)
				return
			}
			llmtest.Play("text/event-stream", turnEvents(turn)...)(w, r)
		})
		return adapter(t, s.URL)
	})
}

func turnEvents(turn llmtest.Turn) [][]byte {
	var out [][]byte
	index := 0
	block := func(start string, delta string) {
		out = append(out, event1(fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, start)),
			event1(fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, index, delta)))
		index++
	}
	q := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	if turn.Reasoning != "" {
		block(`{"type":"thinking","thinking":""}`, `{"type":"thinking_delta","thinking":`+q(turn.Reasoning)+`}`)
	}
	if turn.Text != "" {
		block(`{"type":"text","text":""}`, `{"type":"text_delta","text":`+q(turn.Text)+`}`)
	}
	for _, c := range turn.Calls {
		block(`{"type":"tool_use","input":{},"id":`+q(c.ID)+`,"name":`+q(c.Name)+`}`, `{"type":"input_json_delta","partial_json":`+q(string(c.Arguments))+`}`)
	}
	if turn.Hang {
		return append(out, nil)
	}
	return append(out, event1(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`), event1(`{"type":"message_stop"}`))
}

func FuzzDecode(f *testing.F) {
	for _, r := range llmtest.Recorded(f, "ant", "ant-ns") {
		if len(r.Body) < 8<<10 {
			f.Add(r.Body)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := decode(body); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := event1(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	body = append(body, bytes.Repeat(event1(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words "}}`), 1000)...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := newDecoder(llm.NewEmitter(func(llm.Chunk) bool { return true }))
		d.end(sse.Read(bytes.NewReader(body), d.event))
	}
}
