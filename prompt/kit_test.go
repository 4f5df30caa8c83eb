package prompt_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

// world is a runtime with the service.
type world struct {
	t    testing.TB
	root *cordis.Context
	*prompt.Registry
}

func newWorld(t testing.TB, cfg prompt.Config) *world {
	t.Helper()
	w := &world{t: t, root: cordis.New()}
	w.plugin(w.root, prompt.Plugin(cfg))
	var ok bool
	if w.Registry, ok = prompt.Service.Get(w.root); !ok {
		t.Fatal("no prompt service")
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := w.root.Fiber().Dispose(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) plugin(c *cordis.Context, p *cordis.Plugin) *cordis.Fiber {
	w.t.Helper()
	f, err := c.Mount(p, nil)
	if err == nil {
		err = f.Await(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// child is the context of a plugin of its own below c.
func (w *world) child(c *cordis.Context, name string) *cordis.Context {
	w.t.Helper()
	var own *cordis.Context
	w.plugin(c, &cordis.Plugin{Name: name, Apply: func(c *cordis.Context, _ any) error { own = c; return nil }})
	return own
}

// mounted is the context of a temporary plugin.
func (w *world) mounted(c *cordis.Context, number int) *cordis.Context {
	w.t.Helper()
	id := "dyn-" + string(rune('0'+number))
	return w.child(tool.WithMount(c, tool.Mount{Number: number, ID: id, Plugin: "temporary"}), "temporary")
}

func (w *world) section(c *cordis.Context, s prompt.Section) *cordis.Handle {
	w.t.Helper()
	h, err := w.Registry.Section(c, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) variable(c *cordis.Context, name string, fn func(context.Context, prompt.View) (string, error)) {
	w.t.Helper()
	if _, err := w.Registry.Variable(c, name, fn); err != nil {
		w.t.Fatal(err)
	}
}

// system is the system prompt without the identity.
func (w *world) system(v prompt.View) string {
	w.t.Helper()
	text, err := w.System(w.t.Context(), v)
	if err != nil {
		w.t.Fatal(err)
	}
	text, _ = strings.CutPrefix(text, prompt.Identity)
	return strings.TrimPrefix(text, "\n\n")
}

func (w *world) fails(v prompt.View, is error, parts ...string) {
	w.t.Helper()
	text, err := w.System(w.t.Context(), v)
	if err == nil {
		w.t.Fatalf("no error, but %q", text)
	}
	refused(w.t, err, is, parts...)
}

func refused(t testing.TB, err, is error, parts ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Fatalf("error %v, want %v", err, is)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
}

// warnings are those that were logged so far.
func (w *world) warnings() []string {
	var all []string
	for _, m := range w.root.Runtime().Messages() {
		if strings.Contains(m.Text, "left out of the prompt") {
			all = append(all, m.Text)
		}
	}
	return all
}

func says(text string) func(context.Context, prompt.View) (string, error) {
	return func(context.Context, prompt.View) (string, error) { return text, nil }
}

func broken(context.Context, prompt.View) (string, error) { return "", errors.New("it broke") }
