package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/sse"
	"github.com/dsh-go/dsh/llm/llmtest"
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
	for _, r := range llmtest.Recorded(t, "oai", "oai-ns") {
		t.Run(strings.ReplaceAll(r.File, "/", "."), func(t *testing.T) {
			variants := llmtest.Variants(r.Body)
			kind := "text/event-stream"
			if r.Wire == "oai-ns" {
				kind = "application/json"
				variants = map[string][][]byte{"asItIs": {r.Body}, "emptyLines": {[]byte("\n\n\n"), r.Body}}
			} else {
				variants["oneByteReads"] = single(r.Body)
			}
			for name, pieces := range variants {
				t.Run(name, func(t *testing.T) {
					s := llmtest.Serve(t, llmtest.Play(kind, pieces...))
					compare(t, ask(t, adapter(t, s.URL)), r.Expect)
				})
			}
		})
	}
}

func single(body []byte) [][]byte {
	body = body[:min(len(body), 4<<20)]
	at := bytes.IndexFunc(body, func(r rune) bool { return r > 127 })
	if at < 0 {
		at = len(body) / 2
	}
	out := [][]byte{body[:at]}
	for i := at; i < min(at+40, len(body)); i++ {
		out = append(out, body[i:i+1])
	}
	return append(out, body[min(at+40, len(body)):], []byte("\n"))
}

func compare(t *testing.T, got llm.Answer, want *llmtest.Expect) {
	t.Helper()
	var reasoning string
	type call struct{ ID, Name, Args string }
	var calls, wanted []call
	for _, b := range got.Content {
		switch b.Type {
		case llm.ReasoningBlock:
			reasoning += string(b.Text)
		case llm.CallBlock:
			calls = append(calls, call{b.ID, b.Name, string(b.Arguments)})
		}
	}
	for _, c := range want.Tools {
		wanted = append(wanted, call{c.ID, c.Name, c.Args})
	}
	if d := cmp.Diff(want.Text+want.Refusal, llm.JoinText(got.Content)); d != "" {
		t.Errorf("text -want +got\n%s", d)
	}
	if d := cmp.Diff(want.Reasoning, reasoning); d != "" {
		t.Errorf("reasoning -want +got\n%s", d)
	}
	if d := cmp.Diff(wanted, calls); d != "" {
		t.Errorf("calls -want +got\n%s", d)
	}
	reason := map[string]llm.FinishReason{"": llm.Stop, "stop": llm.Stop, "tool_calls": llm.ToolCalls, "length": llm.MaxTokens, "content_filter": llm.Failed}[want.Finish]
	if reason == llm.Stop && len(calls) > 0 {
		reason = llm.ToolCalls
	}
	if want.Failed() {
		reason = llm.Failed
	}
	if got.Reason != reason {
		t.Errorf("reason %q (%v), want %q", got.Reason, got.Failure, reason)
	}
	if (got.Usage == nil) != (want.Usage == nil) {
		t.Fatalf("usage %v, want %v", got.Usage, want.Usage)
	}
	if want.Usage != nil {
		if total, _ := want.Usage["total_tokens"].(float64); got.Usage.Total() != int64(total) {
			t.Errorf("usage %+v adds up to %d, want %v", *got.Usage, got.Usage.Total(), total)
		}
	}
}

var finished = regexp.MustCompile(`"finish_reason": *"`)

// TestCut: a stream that is cut before it said why it ended is never an answer.
func TestCut(t *testing.T) {
	for _, r := range llmtest.Recorded(t, "oai") {
		t.Run(strings.ReplaceAll(r.File, "/", "."), func(t *testing.T) {
			end := bytes.Index(r.Body, []byte("data: [DONE]"))
			if at := finished.FindIndex(r.Body); at != nil {
				end = at[0]
			}
			if r.Expect.Failed() || end < 0 {
				t.Skip("it has no end to be cut before")
			}
			for cut := 0; cut < end; cut += 1 + end/60 {
				a, err := decode(r.Body[:cut])
				if err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
				if a.Failure == nil || !a.Failure.Retryable() {
					t.Fatalf("cut at %d of %d: reason %s, failure %v", cut, len(r.Body), a.Reason, a.Failure)
				}
			}
		})
	}
}

// TestRefusals: recorded error answers have the code that decides what happens next.
func TestRefusals(t *testing.T) {
	for _, e := range llmtest.Errors(t) {
		t.Run(e.Name, func(t *testing.T) {
			s := llmtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range e.Headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(e.Status)
				_, _ = w.Write([]byte(e.Body))
			})
			f := ask(t, adapter(t, s.URL)).Failure
			if f == nil || f.Status != e.Status || f.Message == "" || strings.HasPrefix(f.Message, "{") {
				t.Fatalf("failure %+v", f)
			}
			if want := refusal(e.Name); f.Code != want {
				t.Errorf("code %s (%s), want %s", f.Code, f.Message, want)
			}
		})
	}
}

// refusal is the code of a recorded refusal, by its name.
func refusal(name string) string {
	for _, c := range []struct{ part, code string }{
		{"quota", llm.CodeQuota}, {"balance", llm.CodeQuota}, {"429", llm.CodeRateLimit}, {"401", llm.CodeAuth}, {"403", llm.CodeAuth},
		{"xai_400", llm.CodeAuth}, {"context", llm.CodeContextWindow}, {"too_long", llm.CodeContextWindow}, {"404", llm.CodeUnknownModel},
		{"jinja", llm.CodeInvalidRequest}, {"400", llm.CodeInvalidRequest}, {"500", llm.CodeServer}, {"529", llm.CodeServer},
	} {
		if strings.Contains(name, c.part) {
			return c.code
		}
	}
	return "?"
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		name    string
		status  int
		headers map[string]string
		want    int64 // -1: not said
	}{
		{"seconds", 429, map[string]string{"Retry-After": "3"}, 3000},
		{"millis", 529, map[string]string{"Retry-After-Ms": "250"}, 250},
		{"both", 429, map[string]string{"Retry-After": "1", "Retry-After-Ms": "0"}, 1000},
		{"nothing", 529, nil, -1},
		{"nonsense", 429, map[string]string{"Retry-After": "soon"}, -1},
		{"past", 429, map[string]string{"Retry-After": "Mon, 02 Jan 2006 15:04:05 GMT"}, 0},
		{"huge", 429, map[string]string{"Retry-After": "1e300"}, (24 * time.Hour).Milliseconds()},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range c.headers {
					w.Header().Set(k, v)
				}
				w.WriteHeader(c.status)
			})
			f := ask(t, adapter(t, s.URL)).Failure
			if !f.Retryable() {
				t.Errorf("%v is not to be retried", f)
			}
			got := int64(-1)
			if f.RetryAfterMs != nil {
				got = *f.RetryAfterMs
			}
			if got != c.want {
				t.Errorf("retry after %d ms, want %d", got, c.want)
			}
		})
	}
}

func event(json string) []byte { return []byte("data: " + json + "\n\n") }

func textEvent(s string) []byte {
	b, _ := json.Marshal(s)
	return event(`{"choices":[{"index":0,"delta":{"content":` + string(b) + `}}]}`)
}

func TestBadConnections(t *testing.T) {
	half := textEvent("é")
	at := bytes.Index(half, []byte("é")) + 1
	for _, c := range []struct {
		name   string
		code   string
		text   string
		pieces [][]byte
	}{
		{"stall", llm.CodeTimeout, "hel", [][]byte{textEvent("hel"), nil}},
		{"stallBeforeAnything", llm.CodeTimeout, "", [][]byte{nil}},
		{"cut", llm.CodeStreamClosed, "hel", [][]byte{textEvent("hel"), {}}},
		{"cutInRune", llm.CodeStreamClosed, "", [][]byte{half[:at], {}}},
		{"endInRune", llm.CodeStreamClosed, "", [][]byte{half[:at]}},
		{"nothing", llm.CodeStreamClosed, "", nil},
		{"html", llm.CodeMalformed, "", [][]byte{[]byte("<html>502</html>")}},
		{"notJSON", llm.CodeMalformed, "a", [][]byte{textEvent("a"), []byte("data: {nope}\n\n"), textEvent("b")}},
		{"errorObject", llm.CodeServer, "a", [][]byte{textEvent("a"), event(`{"error":{"message":"Overloaded","code":503}}`)}},
		{"errorString", llm.CodeRateLimit, "", [][]byte{event(`{"error":"rate limit reached"}`)}},
		{"errorFlat", llm.CodeServer, "", [][]byte{event(`{"error_type":"x","error_message":"broke"}`)}},
		{"errorBareJSON", llm.CodeContextWindow, "", [][]byte{[]byte(`{"error":{"message":"context length exceeded"}}`)}},
		{"doneOnly", llm.CodeEmpty, "", [][]byte{[]byte("data: [DONE]\n\n")}},
		{"filtered", llm.CodeContentFilter, "", [][]byte{event(`{"choices":[{"index":0,"finish_reason":"content_filter"}]}`)}},
		{"namelessCall", llm.CodeMalformed, "", [][]byte{event(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x"}]},"finish_reason":"tool_calls"}]}`)}},
		{"finishedThenCut", "", "a", [][]byte{textEvent("a"), event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), {}}},
		{"finishedThenStall", "", "a", [][]byte{textEvent("a"), event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.Serve(t, llmtest.Play("text/event-stream", c.pieces...))
			a := ask(t, adapter(t, s.URL, func(o *Options) { o.Idle = 300 * time.Millisecond }))
			code := ""
			if a.Failure != nil {
				code = a.Failure.Code
			}
			if code != c.code || llm.JoinText(a.Content) != c.text {
				t.Errorf("code %q (%v), text %q; want %q, %q", code, a.Failure, llm.JoinText(a.Content), c.code, c.text)
			}
		})
	}
}

// TestSlow: a slow stream is no stalled one, and a slow reader stalls nothing.
func TestSlow(t *testing.T) {
	t.Parallel()
	const idle = time.Second
	s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		for range 13 {
			select {
			case <-time.After(idle / 10):
			case <-r.Context().Done():
				return
			}
			_, _ = w.Write([]byte(": keep-alive\n\n"))
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = w.Write(append(textEvent("late"), "data: [DONE]\n\n"...))
	})
	a := adapter(t, s.URL, func(o *Options) { o.Idle = idle })
	asm := llm.NewAssembler()
	for c := range a.Stream(context.Background(), request()) {
		if c.Type == llm.TextDelta {
			<-time.After(idle + idle/5) // the reader takes longer than the idle timeout
		}
		asm.Add(c)
	}
	if got := asm.Answer(); got.Failure != nil || llm.JoinText(got.Content) != "late" {
		t.Fatalf("answer %+v, failure %v", got, got.Failure)
	}
}

func TestToolDialects(t *testing.T) {
	for _, c := range []struct {
		name   string
		deltas []string
		want   string
	}{
		{"noIndex", []string{`{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"[]"}}`}, "a f {}|b g []"},
		{"noIndexNoId", []string{`{"function":{"name":"f","arguments":"{\"a\":"}}`, `{"function":{"arguments":"1}"}}`}, `call_0 f {"a":1}`},
		{"indexAlwaysZero", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"1"}}`, `{"index":0,"id":"b","function":{"name":"g","arguments":"2"}}`, `{"index":0,"function":{"arguments":"3"}}`}, "a f 1|b g 23"},
		{"nulls", []string{`{"index":1,"id":"a","function":{"name":"f","arguments":null}}`, `{"index":1,"id":null,"type":null,"function":{"name":null,"arguments":"{}"}}`}, "a f {}"},
		{"emptyIdAndName", []string{`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":0,"id":"","function":{"name":"","arguments":"{ }"}}`}, "a f { }"},
		{"object", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1.0}}}`}, `a f {"x": 1.0}`},
		{"idInFunction", []string{`{"index":0,"function":{"id":"a","name":"f","arguments":"{"}}`, `{"index":0,"function":{"id":"a","name":"f","arguments":"}"}}`}, "a f {}"},
		{"sameIdTwice", []string{`{"index":0,"id":"a","function":{"name":"f"}}`, `{"index":1,"id":"a","function":{"name":"g"}}`}, "a f |a-2 g "},
		{"invalidArguments", []string{`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"a\": nope \\u0000"}}`}, `a f {"a": nope \u0000`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var body []byte
			for _, d := range c.deltas {
				body = append(body, event(`{"choices":[{"index":0,"delta":{"tool_calls":[`+d+`]}}]}`)...)
			}
			a, err := decode(append(body, "data: [DONE]\n\n"...))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range a.Content {
				got = append(got, b.ID+" "+b.Name+" "+string(b.Arguments))
			}
			if strings.Join(got, "|") != c.want || a.Reason != llm.ToolCalls {
				t.Errorf("got %q, %v; want %q", strings.Join(got, "|"), a.Failure, c.want)
			}
		})
	}
}

// TestKeyNeverShows: a server that answers with the key does not get it into a failure.
func TestKeyNeverShows(t *testing.T) {
	s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"bad key %s"}}`, r.Header.Get("Authorization"))
	})
	f := ask(t, adapter(t, s.URL)).Failure
	if text := fmt.Sprintf("%+v", *f); strings.Contains(text, "sk-secret") || f.Code != llm.CodeAuth {
		t.Errorf("failure %s", text)
	}
	if got := s.Header(0).Get("Authorization"); got != "Bearer sk-secret" {
		t.Errorf("the server was sent %q", got)
	}
}

// TestKeyIsHidden: no failure says the key, whatever way a server says it.
func TestKeyIsHidden(t *testing.T) {
	llmtest.Echo(t, func(t *testing.T, url string) llm.Adapter {
		return adapter(t, url, func(o *Options) { o.Key = func() (string, error) { return llmtest.EchoKey, nil } })
	})
}

// TestRedirect: the key goes to nobody that it was not given to.
func TestRedirect(t *testing.T) {
	other := llmtest.Serve(t, llmtest.Play("text/event-stream"))
	s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if f := ask(t, adapter(t, s.URL)).Failure; f == nil || f.Code != "HTTP_307" || len(other.Bodies()) != 0 ||
		!strings.Contains(f.Message, "points to "+other.URL) || !strings.Contains(f.Message, strings.TrimPrefix(s.URL, "http://")) {
		t.Errorf("failure %v, the other server was asked %d times", f, len(other.Bodies()))
	}
}

func TestNoServer(t *testing.T) {
	f := ask(t, adapter(t, "http://127.0.0.1:1/v1")).Failure
	if f == nil || f.Code != llm.CodeTransport || !strings.Contains(f.Message, "127.0.0.1:1") {
		t.Errorf("failure %v", f)
	}
	a := adapter(t, "http://127.0.0.1:1/v1", func(o *Options) { o.Key = func() (string, error) { return "", errors.New("none") } })
	if f := ask(t, a).Failure; f.Code != llm.CodeMissingCredential {
		t.Errorf("failure %v", f)
	}
}

func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, turns ...llmtest.Turn) llm.Adapter {
		next := make(chan llmtest.Turn, len(turns))
		for _, turn := range turns {
			next <- turn
		}
		s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
			turn := <-next
			if turn.Fail {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			llmtest.Play("text/event-stream", turnEvents(turn)...)(w, r)
		})
		return adapter(t, s.URL)
	})
}

func turnEvents(turn llmtest.Turn) [][]byte {
	var out [][]byte
	add := func(delta map[string]any) {
		b, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta}}})
		out = append(out, event(string(b)))
	}
	if turn.Reasoning != "" {
		add(map[string]any{"reasoning_content": turn.Reasoning})
	}
	if turn.Text != "" {
		add(map[string]any{"content": turn.Text})
	}
	for i, c := range turn.Calls {
		add(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.ID, "function": map[string]any{"name": c.Name, "arguments": c.Arguments}}}})
	}
	if turn.Hang {
		return append(out, nil)
	}
	return append(out, event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), []byte("data: [DONE]\n\n"))
}

func FuzzDecode(f *testing.F) {
	for _, r := range llmtest.Recorded(f, "oai", "oai-ns") {
		if len(r.Body) < 8<<10 {
			f.Add(r.Body)
		}
	}
	f.Add([]byte("error: {}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{},{\"index\":-1}]}}]}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := decode(body); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	body := bytes.Repeat(textEvent("some words "), 1000)
	body = append(body, "data: [DONE]\n\n"...)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := newDecoder(llm.NewEmitter(func(llm.Chunk) bool { return true }))
		d.end(sse.Read(bytes.NewReader(body), d.event))
	}
}

// TestManySessions: streams that stand still do not delay one that moves.
func TestManySessions(t *testing.T) {
	const n = 200
	var waiting sync.WaitGroup
	waiting.Add(n)
	release := make(chan struct{})
	s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		waiting.Done() // the last one to arrive lets all go on
		_, _ = w.Write(textEvent("a"))
		_ = http.NewResponseController(w).Flush()
		<-release
		_, _ = w.Write(append(textEvent("b"), "data: [DONE]\n\n"...))
	})
	go func() {
		waiting.Wait()
		close(release)
	}()
	a := adapter(t, s.URL)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, ans, err := llmtest.Collect(a.Stream(context.Background(), request()))
			if err != nil || ans.Failure != nil || llm.JoinText(ans.Content) != "ab" {
				t.Errorf("answer %+v, %v, %v", ans, ans.Failure, err)
			}
		})
	}
	wg.Wait()
}

// TestRetry: a request that is refused twice and cut once is sent again, the same.
func TestRetry(t *testing.T) {
	tries := 0
	s := llmtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch tries++; tries {
		case 1:
			w.Header().Set("Retry-After-Ms", "20")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.WriteHeader(529)
		case 3:
			llmtest.Play("text/event-stream", textEvent("lost"), []byte{})(w, r)
		default:
			llmtest.Play("text/event-stream", textEvent("kept"), []byte("data: [DONE]\n\n"))(w, r)
		}
	})
	a := adapter(t, s.URL)
	var got llm.Answer
	var waits []time.Duration
	policy := llm.Retry{Max: 3, Base: time.Millisecond, Limit: time.Second}
	f := policy.Run(context.Background(), 0, func() *llm.Failure {
		got = ask(t, a)
		return got.Failure
	}, func(_ int, _ *llm.Failure, wait time.Duration) error {
		waits = append(waits, wait)
		return nil
	})
	if f != nil || llm.JoinText(got.Content) != "kept" {
		t.Fatalf("failure %v, answer %+v", f, got)
	}
	if d := cmp.Diff([]time.Duration{20 * time.Millisecond, 2 * time.Millisecond, 4 * time.Millisecond}, waits); d != "" {
		t.Errorf("waits -want +got\n%s", d)
	}
	for _, b := range s.Bodies() {
		if !bytes.Equal(b, s.Bodies()[0]) {
			t.Errorf("a retry sends\n%s\nafter\n%s", b, s.Bodies()[0])
		}
	}
}
