package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a runtime with a registry.
type world struct {
	t    testing.TB
	root *cordis.Context
	r    *Registry
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, root: cordis.New()}
	f, err := w.root.Mount(Plugin(), nil)
	w.must(err)
	w.must(f.Await(w.ctx()))
	r, ok := Service.Get(w.root)
	if !ok {
		t.Fatal("no tools service")
	}
	w.r = r
	t.Cleanup(func() {
		if _, err := w.root.Fiber().Dispose(context.Background()); err != nil {
			t.Errorf("dispose the world: %v", err)
		}
	})
	return w
}

func (w *world) ctx() context.Context { return context.Background() }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// plugin mounts a plugin below c and waits for it.
func (w *world) plugin(c *cordis.Context, name string, apply func(c *cordis.Context) error) *cordis.Fiber {
	w.t.Helper()
	f, err := c.Mount(&cordis.Plugin{Name: name, Apply: func(c *cordis.Context, _ any) error { return apply(c) }}, nil)
	w.must(err)
	w.must(f.Await(w.ctx()))
	return f
}

// owner mounts a plugin that registers the tools.
func (w *world) owner(c *cordis.Context, name string, defs ...*Definition) *cordis.Fiber {
	w.t.Helper()
	return w.plugin(c, name, func(c *cordis.Context) error {
		for _, d := range defs {
			if _, err := w.r.Register(c, d); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *world) dispose(f *cordis.Fiber) {
	w.t.Helper()
	_, err := f.Dispose(w.ctx())
	w.must(err)
}

// call runs a tool with arguments in JSON.
func (w *world) call(name, args string) *Result {
	return w.r.Execute(w.ctx(), Call{Name: name, Arguments: lossless.Text(args)})
}

func (w *world) names(s *Scope) []string {
	names := []string{}
	for _, v := range w.r.List(s) {
		names = append(names, v.Name)
	}
	return names
}

func parameters(text string) *schema.Schema {
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return schema.Must(schema.Parameters(v))
}

func output(text string) *schema.Schema {
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return schema.Must(schema.Output(v))
}

var (
	textParameters = parameters(`{"text":{"type":"string","default":"hi"}}`)
	stringOutput   = output(`{"type":"string"}`)
)

// def returns a tool that answers its text argument, changed by edits.
func def(name string, edits ...func(*Definition)) *Definition {
	d := &Definition{
		Name: name, Description: "about " + name, Parameters: textParameters,
		Output: Output{
			Schema: stringOutput,
			Render: func(_ context.Context, _, value lossless.Text) ([]Block, error) {
				var s string
				err := json.Unmarshal(value, &s)
				return []Block{TextBlock(s)}, err
			},
		},
		Execute: func(_ context.Context, exec *Exec) (Outcome, error) {
			var args struct{ Text string }
			err := json.Unmarshal(exec.Arguments, &args)
			return Outcome{Value: str(args.Text)}, err
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

// body replaces Execute.
func body(fn func(ctx context.Context, exec *Exec) (Outcome, error)) func(*Definition) {
	return func(d *Definition) { d.Execute = fn }
}

func str(s string) lossless.Text { return lossless.Str(s).Encode() }

func text(r *Result) string {
	out := ""
	for _, b := range r.Content {
		out += b.Text
	}
	return out
}

func code(r *Result) string {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// within fails the test when ch does not deliver.
func within[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(10 * time.Second):
		t.Fatal("no " + what)
		panic("unreachable")
	}
}

var errBoom = errors.New("boom")

type handles []*cordis.Handle

func (h *handles) add(handle *cordis.Handle, err error) {
	if err != nil {
		panic(fmt.Sprintf("register: %v", err))
	}
	*h = append(*h, handle)
}
