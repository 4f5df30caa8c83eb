package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func collect(r io.Reader) (events []string, f *llm.Failure) {
	f = Read(r, func(e Event) bool {
		events = append(events, strings.TrimSpace(e.Type+" "+string(e.Data)))
		return true
	})
	return events, f
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"plain", "event: a\ndata: 1\n\ndata:2\n\n", []string{"a 1", "2"}},
		{"twoLines", "data: a\ndata: b\n\n", []string{"a\nb"}},
		{"heartbeats", ": x\n\n: y\n\ndata:\n\ndata: : z\n\ndata: 1\n\n", []string{"1"}},
		{"blankFirst", "\n\n\r\n  \ndata: 1\n\n", []string{"1"}},
		{"bom", "\ufeffdata: 1\n\n", []string{"1"}},
		{"bomAndBlank", "\ufeff\n\ndata: 1\n\n", []string{"1"}},
		{"crlf", "data: 1\r\n\r\ndata: 2\r\n\r\n", []string{"1", "2"}},
		{"cr", "data: 1\r\rdata: 2\r\r", []string{"1", "2"}},
		{"noBlankLast", "data: 1\n\ndata: 2", []string{"1", "2"}},
		{"errorField", "error: {\"a\":1}\n\ndata: 2\n\n", []string{`error {"a":1}`, "2"}},
		{"bareJSONInside", "data: 1\n\n{\"error\":2}\n\n", []string{"1", `{"error":2}`}},
		{"whole", " \n {\"a\":\n1}\n", []string{"{\"a\":\n1}"}},
		{"nothing", "", nil},
		{"errorFieldCRLF", "event: x\r\nerror: 1\r\n\r\ndata: 2\r\n\r\n", []string{"error 1", "2"}},
		{"errorFieldLast", "error: {}", []string{"error {}"}},
		{"mixedEnds", "data: 1\r\n\ndata: 2\n\rdata: 3\r\n\r\n", []string{"1", "2", "3"}},
		{"longLine", "data: " + strings.Repeat("é", 50_000) + "\n\n", []string{strings.Repeat("é", 50_000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytewise": iotest.OneByteReader(strings.NewReader(c.in)), "dataErr": iotest.DataErrReader(strings.NewReader(c.in))} {
				got, f := collect(r)
				if f != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: %.200q, %v; want %.200q", name, got, f, c.want)
				}
			}
		})
	}
}

func TestReadBounds(t *testing.T) {
	const limit = 100_000
	none := func(Event) bool { t.Error("an event came out"); return true }
	f := read("", io.MultiReader(strings.NewReader("data: "), io.LimitReader(zeros{}, limit+1)), limit, none)
	if f == nil || f.Code != llm.CodeMalformed {
		t.Errorf("an event without end: %v", f)
	}
	s := llmtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		line := append(bytes.Repeat([]byte(":"), 1<<10), "\n\n"...)
		for range limit/(1<<10) + 1 {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	})
	f = Post{URL: s.URL, limit: limit}.Do(context.Background(), none)
	if f == nil || f.Code != llm.CodeMalformed {
		t.Errorf("an answer without end: %v", f)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// TestStallBeforeHeaders: a server that accepts and says nothing.
func TestStallBeforeHeaders(t *testing.T) {
	s := llmtest.Serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	f := Post{URL: s.URL, Idle: 50 * time.Millisecond}.Do(context.Background(), nil)
	if f == nil || f.Code != llm.CodeTimeout {
		t.Errorf("failure %v", f)
	}
}

// TestSaysWhatToDo: what a server that is none of an API answers, and pages of gateways.
func TestSaysWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name         string
		status       int
		kind, body   string
		location     string
		code, expect string
	}{
		{"page", 200, "text/html", "<html><body>Login</body></html>", "", llm.CodeMalformed, "answered with a web page, so this is not the address of its API: check the base URL"},
		{"badGateway", 502, "text/html", "<html><head><style>a{}</style><title>502</title></head>\n<body>Bad <b>Gateway</b></body></html>", "", llm.CodeServer, "502 Bad Gateway"},
		{"cutTag", 503, "text/html", "<html><body>Busy<a href=", "", llm.CodeServer, "Busy"},
		{"pageInJSON", 500, "application/json", `{"error":{"message":"<html>Oh no</html>"}}`, "", llm.CodeServer, "Oh no"},
		{"long", 500, "text/plain", strings.Repeat("boom ", 1000), "", llm.CodeServer, strings.Repeat("boom ", 23) + "boom…"},
		{"less", 500, "text/plain", "1 < 2 > 0", "", llm.CodeServer, "1 < 2 > 0"},
		{"notFound", 404, "text/plain", "404 page not found", "", "HTTP_404", "404 page not found; if this is not the address of an API, check the base URL"},
		{"redirect", 302, "text/plain", "", "http://a:b@other.example/x?key=1", "HTTP_302", "points to http://other.example/x, and a request with a key goes nowhere but where it was sent; if that is the right place, make it the base URL"},
		{"redirectNowhere", 302, "text/plain", "", "", "HTTP_302", "points elsewhere, and"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				if c.location != "" {
					w.Header().Set("Location", c.location)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			f := Post{URL: s.URL}.Do(t.Context(), func(Event) bool { return true })
			if f == nil || f.Code != c.code || !strings.Contains(f.Message, c.expect) || (c.status >= 400 && f.Message != c.expect) {
				t.Errorf("failure %v, want %s: %s", f, c.code, c.expect)
			}
			if c.status < 400 && !strings.Contains(f.Message, strings.TrimPrefix(s.URL, "http://")) {
				t.Errorf("failure %v, want the server named", f)
			}
		})
	}
}

func TestErrorTextIsBounded(t *testing.T) {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": strings.Repeat("x\x1b[2J", 10_000)}})
	f := Refused(500, http.Header{}, body)
	if len([]rune(f.Message)) > limits.ErrorText || strings.Contains(f.Message, "\x1b") {
		t.Errorf("%d characters: %.100q", len(f.Message), f.Message)
	}
}

// BenchmarkLongEvent: the time of an event grows with its length and no faster.
func BenchmarkLongEvent(b *testing.B) {
	for _, n := range []int{64 << 10, 4 << 20} {
		body := append(append([]byte("data: "), bytes.Repeat([]byte("x"), n)...), "\n\n"...)
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				_ = Read(bytes.NewReader(body), func(Event) bool { return true })
			}
		})
	}
}

func FuzzErrorText(f *testing.F) {
	for _, e := range llmtest.Errors(f) {
		f.Add([]byte(e.Body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r := Refused(429, http.Header{}, body); r.Code == "" || r.Message == "" {
			t.Errorf("%q: %+v", body, r)
		}
		InStream(body)
	})
}

// FuzzRead: however the bytes are delivered, the events are the same.
func FuzzRead(f *testing.F) {
	for _, s := range []string{"data: 1\r\n\r\nerror: {}\r\rdata", "\ufeff{\"a\":1}", "event: a\n{\"b\":1}\ndata:\n\n", ":\n\n\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole, f1 := collect(bytes.NewReader(body))
		bytewise, f2 := collect(iotest.OneByteReader(bytes.NewReader(body)))
		if fmt.Sprint(whole) != fmt.Sprint(bytewise) || (f1 == nil) != (f2 == nil) {
			t.Errorf("whole %q %v, byte by byte %q %v", whole, f1, bytewise, f2)
		}
	})
}
