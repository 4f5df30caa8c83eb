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
	_, err := New(OpenAI, Options{Keys: env(map[string]string{"OPENAI_BASE_URL": "http://me:hunter2@host"})})
	if err == nil || !strings.Contains(err.Error(), "OPENAI_BASE_URL") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password in the base URL: %v", err)
	}
	for _, p := range WithKey() {
		err := CheckURL(p, "http://me:hunter2@host")
		if err == nil || !strings.Contains(err.Error(), "without a name or a password in it") || CheckURL(p, "http://host/v1") != nil || CheckURL(p, "") != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if got := Default(env(map[string]string{"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "y"})); got != OpenAI {
		t.Errorf("default %q", got)
	}
	if got := Default(env(nil)); got != "" {
		t.Errorf("default %q", got)
	}
}

// TestAdvice: a refusal of the key says which key that was, and how to change it.
func TestAdvice(t *testing.T) {
	s := llmtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	kept := keys.Store{Home: t.TempDir(), Env: env(nil).Env}
	if err := kept.Set(OpenAI, keys.NewKey("sk-kept"), s.URL); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		store keys.Store
		want  string
	}{
		"variable": {env(map[string]string{"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": s.URL}), "Forbidden; the key is that of OPENAI_API_KEY, which goes before one that `dsh auth set openai` keeps"},
		"file":     {kept, keys.File + "; `dsh auth set openai` replaces it"},
		"none":     {env(map[string]string{"OPENAI_BASE_URL": s.URL}), "no key was sent: set OPENAI_API_KEY, or keep one with `dsh auth set openai`"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := New(OpenAI, Options{Keys: c.store})
			if err != nil {
				t.Fatal(err)
			}
			r := &llm.Request{Config: llm.Config{Provider: OpenAI, Model: "m"}, Messages: []llm.Message{llm.UserText("hi")}}
			_, ans, err := llmtest.Collect(a.Stream(context.Background(), r))
			if err != nil || ans.Failure == nil || ans.Failure.Code != llm.CodeAuth || !strings.HasSuffix(ans.Failure.Message, c.want) {
				t.Errorf("failure %v, %v; want one with %q", ans.Failure, err, c.want)
			}
		})
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
