package llmtest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/llm"
)

// EchoKey is the key that the adapters of Echo send.
const EchoKey = "sk-Echo-1234567890abcdef"

// Echo checks that no failure of an adapter has the key in it, whatever way a
// server takes to say it. open makes an adapter that sends EchoKey to a base URL.
func Echo(t *testing.T, open func(t *testing.T, url string) llm.Adapter) {
	status := func(n int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", "id-"+EchoKey)
			w.WriteHeader(n)
			_, _ = w.Write([]byte(body))
		}
	}
	stream := func(data string) http.HandlerFunc {
		return Play("text/event-stream", []byte("data: "+data+"\n\n"))
	}
	object := fmt.Sprintf(`{"type":"error","error":{"message":"overloaded key Bearer %s","type":"x"}}`, EchoKey)
	long := strings.Repeat("x", 150)
	for name, h := range map[string]http.HandlerFunc{
		"inStream":      stream(object),
		"inStreamKind":  stream(fmt.Sprintf(`{"type":"error","error":{"type":%q}}`, EchoKey)),
		"errorEvent":    Play("text/event-stream", []byte("event: error\ndata: "+object+"\n\n")),
		"errorLine":     Play("text/event-stream", []byte("error: "+object+"\n\n")),
		"whole":         Play("application/json", []byte(object)),
		"finish":        stream(fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":%q}]}`, EchoKey)),
		"stopReason":    stream(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q}}`, EchoKey)),
		"malformed":     stream("{nope " + EchoKey),
		"malformedCut":  stream("{nope " + long + " " + EchoKey + long),
		"malformedJSON": Play("application/json", []byte(`{"id":"`+EchoKey+`"}`)),
		"page":          Play("text/html", []byte("<html>"+EchoKey)),
		"status401":     status(401, object),
		"status500":     status(500, "boom "+EchoKey),
		"status500Cut":  status(500, strings.Repeat("x ", 50)+EchoKey+long),
		"status502Page": status(502, "<html><body><h1>"+EchoKey+"</h1></body></html>"),
		"detail":        status(422, `{"detail":"`+EchoKey+`"}`),
		"redirect": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/v1/"+EchoKey+"?key="+EchoKey)
			w.WriteHeader(http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Serve(t, h)
			a := open(t, s.URL)
			_, ans, err := Collect(a.Stream(context.Background(), request()))
			if err != nil || ans.Failure == nil {
				t.Fatalf("answer %+v, %v; want a failure", ans, err)
			}
			text := strings.ToLower(fmt.Sprintf("%+v", *ans.Failure))
			if strings.Contains(text, strings.ToLower(EchoKey[:14])) || ans.Failure.Message == "" {
				t.Errorf("failure %s", text)
			}
			if sent := fmt.Sprint(s.Header(0)); !strings.Contains(sent, EchoKey) {
				t.Errorf("the server was not sent the key: %s", sent)
			}
		})
	}
}
