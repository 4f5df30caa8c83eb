package cordis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// The tests carry the numbers of the behaviours that the runtime is specified
// by: 1-159, and 24a-h for concurrency. Left out, as idioms of the language of
// the original, or another package's:
//
//	26        a body that returns a value of a wrong kind: the compiler refuses it
//	41, 152   classes with an init method: a plugin is one value with Apply
//	42        decorated methods: Inject (33, 95) is the form that exists
//	76, 81    iteration of the registry; plugins that share a callback: identity is the pointer
//	91        contexts of subclasses; of 92 the access rules remain
//	97        a service that emits with itself as the subject: WithFilter (116-119) is the form
//	98-102    dotted services, associations, accessors, traced classes
//	103       callable services: the interception that they merge is tested in 112
//	138       throwing into an iterator
//	150, 151  loggers named after the service whose method runs: contexts are passed
//	154, 155  printf-like formatting of objects, custom formatters: attributes are slog's
//	24h       the loader's
//
// Overridden, and tested with their new outcome: 23, 25, 30, 32, 44, 66 (consumers
// first), 68, 69, 71 (ErrSelf), 82, 88, 89, 116, 122, 123, 128, 131, 159.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world makes a runtime that must be empty again when the test has ended.
func world(t testing.TB, opts ...Option) *Context {
	t.Helper()
	empty := New().Runtime().Digest()
	root := New(opts...)
	t.Cleanup(func() {
		dispose(t, root.Fiber())
		if diff := cmp.Diff(empty, root.Runtime().Digest()); diff != "" {
			t.Errorf("something is left in the runtime:\n%s", diff)
		}
	})
	return root
}

// limit is a context that ends a test which hangs.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func dispose(t testing.TB, f *Fiber) Receipt {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	rec, err := f.Dispose(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// mount mounts p and waits for it to settle.
func mount(t testing.TB, c *Context, p *Plugin, config any) *Fiber {
	t.Helper()
	f, err := c.Mount(p, config)
	if err != nil {
		t.Fatal(err)
	}
	settle(t, f)
	return f
}

func settle(t testing.TB, f *Fiber) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := f.Await(ctx); ctx.Err() != nil {
		t.Fatal(err)
	}
}

func wantState(t testing.TB, f *Fiber, want State) {
	t.Helper()
	if got := f.State(); got != want {
		t.Fatalf("fiber %q is %s, want %s (%v)", f.Name(), got, want, f.Err())
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func wantEqual(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
}

// trace collects what happened, in order.
type trace struct {
	mu    sync.Mutex
	lines []string
}

func (tr *trace) add(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.lines = append(tr.lines, fmt.Sprintf(format, args...))
}

func (tr *trace) take() []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	out := tr.lines
	tr.lines = nil
	return out
}

func (tr *trace) want(t testing.TB, want ...string) {
	t.Helper()
	wantEqual(t, tr.take(), want)
}

// undo makes a disposer that adds a line.
func (tr *trace) undo(line string) Disposer {
	return func(context.Context) error {
		tr.add("%s", line)
		return nil
	}
}

// plugin makes a plugin of a body without configuration.
func plugin(name string, body func(c *Context) error, inject ...string) *Plugin {
	return &Plugin{Name: name, Inject: Require(inject...), Apply: func(c *Context, _ any) error {
		if body == nil {
			return nil
		}
		return body(c)
	}}
}

// provider makes a plugin that provides its services' names as their values.
func provider(name string, services ...string) *Plugin {
	return plugin(name, func(c *Context) error {
		for _, s := range services {
			if _, err := c.Provide(s, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// labels gives the labels of the effects of f.
func labels(f *Fiber) []string {
	var out []string
	for _, e := range f.Effects() {
		out = append(out, e.Label)
	}
	return out
}

// errorsLogged gives the texts of the errors in the log.
func errorsLogged(c *Context) []string {
	var out []string
	for _, m := range c.Runtime().Messages() {
		if m.Level >= 8 {
			out = append(out, m.String())
		}
	}
	return out
}
