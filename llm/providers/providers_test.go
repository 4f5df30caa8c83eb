package providers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(pairs map[string]string) keys.Store {
	return keys.Store{Env: func(name string) (string, bool) { v, ok := pairs[name]; return v, ok }}
}

func TestNew(t *testing.T) {
	for _, p := range Names() {
		a, err := New(p, Options{Keys: env(nil), In: strings.NewReader(""), Out: io.Discard, ScriptDir: t.TempDir()})
		if err != nil {
			t.Fatal(p, err)
		}
		for _, m := range a.Models() {
			if _, err := a.Model(m.Name); err != nil {
				t.Error(p, err)
			}
		}
	}
	if _, err := New("nope", Options{}); err == nil || !strings.Contains(err.Error(), "deepseek, openai") {
		t.Errorf("an unknown provider: %v", err)
	}
	if _, err := New(OpenAI, Options{Keys: env(map[string]string{"OPENAI_BASE_URL": "nonsense"})}); err == nil || !strings.Contains(err.Error(), "openai") {
		t.Errorf("a bad base URL: %v", err)
	}
	if got := Default(env(map[string]string{"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "y"})); got != OpenAI {
		t.Errorf("default %q", got)
	}
	if got := Default(env(nil)); got != "" {
		t.Errorf("default %q", got)
	}
}

// TestKeys: the key goes to the server, none is needed by one with a base URL,
// and without either the failure says where to put one.
func TestKeys(t *testing.T) {
	s := llmtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, c := range []struct {
		name string
		env  map[string]string
		auth string
		code string
	}{
		{"key", map[string]string{"DEEPSEEK_API_KEY": "sk-1", "DEEPSEEK_BASE_URL": s.URL}, "Bearer sk-1", "HTTP_418"},
		{"noneNeeded", map[string]string{"DEEPSEEK_BASE_URL": s.URL}, "", "HTTP_418"},
		{"missing", nil, "", llm.CodeMissingCredential},
		{"bad", map[string]string{"DEEPSEEK_API_KEY": "sk\x01", "DEEPSEEK_BASE_URL": s.URL}, "", llm.CodeInvalidCredential},
	} {
		t.Run(c.name, func(t *testing.T) {
			var g llm.Registry
			a, err := New(DeepSeek, Options{Keys: env(c.env)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := g.Register(DeepSeek, a); err != nil {
				t.Fatal(err)
			}
			call, err := g.Prepare(llm.Config{Provider: DeepSeek})
			if err != nil || call.Config.Model != "deepseek-v4-flash" || call.Config.MaxTokens != 256_000 {
				t.Fatalf("%+v, %v", call, err)
			}
			asked := len(s.Bodies())
			_, ans, err := llmtest.Collect(call.Stream(context.Background(), &llm.Request{Config: call.Config}))
			var f *llm.Failure
			if err != nil || !errors.As(ans.Failure, &f) || f.Code != c.code {
				t.Fatalf("failure %v, %v; want %s", ans.Failure, err, c.code)
			}
			if len(s.Bodies()) > asked && s.Header(asked).Get("Authorization") != c.auth {
				t.Errorf("the server was sent %q", s.Header(asked).Get("Authorization"))
			}
		})
	}
}
