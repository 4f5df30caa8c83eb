// Package selfmodtest starts the self-modification toolset on a real runtime
// with a real worker process, for tests.
//
// A test binary that uses it must let itself be a worker:
//
//	func TestMain(m *testing.M) { selfmodtest.Main(m) }
//
// The variable DSH_TEST_WORKER names another program to use as the worker; race
// tests set it to one that was built without the detector.
package selfmodtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/tool"
)

// workerEnv names the worker's executable; empty: the test binary itself.
const workerEnv = "DSH_TEST_WORKER"

// Main is TestMain for packages that use a Rig: it becomes the worker when it
// was started as one, and checks for leaked goroutines at the end.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "__worker" {
		os.Exit(worker.Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// Wait is how long a Rig waits for anything before it fails the test.
const Wait = 30 * time.Second

// Rig is a runtime with tools, timer and the toolset.
type Rig struct {
	T        testing.TB
	Root     *cordis.Context
	Registry *tool.Registry
	Toolset  *cordis.Fiber

	console *lines
}

// lines is what mounts printed.
type lines struct {
	mu   sync.Mutex
	list []string
}

// For is the same runtime in a subtest.
func (r *Rig) For(t testing.TB) *Rig {
	sub := *r
	sub.T = t
	return &sub
}

// New starts a Rig; the test's end stops it and checks that the runtime is
// empty again.
func New(t testing.TB, cfg selfmod.Config) *Rig {
	t.Helper()
	r := &Rig{T: t, Root: cordis.New(cordis.WithDrainLimit(cfg.DrainLimit())), console: &lines{}}
	if cfg.Worker == "" {
		cfg.Worker = os.Getenv(workerEnv)
	}
	if cfg.Console == nil {
		cfg.Console = r.console
	}
	empty := r.Root.Runtime().Digest()
	for _, p := range []*cordis.Plugin{tool.Plugin(), timer.Plugin(), selfmod.Plugin(cfg)} {
		f, err := r.Root.Mount(p, nil)
		if err != nil {
			t.Fatalf("mount %s: %v", p.Name, err)
		}
		if err := f.Await(r.Context()); err != nil {
			t.Fatalf("start %s: %v", p.Name, err)
		}
		r.Toolset = f
	}
	var ok bool
	if r.Registry, ok = tool.Service.Get(r.Root); !ok {
		t.Fatal("no tools service")
	}
	t.Cleanup(func() {
		if _, err := r.Root.Fiber().Dispose(r.Context()); err != nil {
			t.Errorf("dispose the runtime: %v", err)
		}
		if now := r.Root.Runtime().Digest(); now != empty {
			t.Errorf("the runtime is not empty after everything was disposed:\n%s\nwant\n%s", now, empty)
		}
	})
	return r
}

// Write takes one line.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// Console is what mounts printed so far.
func (r *Rig) Console() []string {
	r.console.mu.Lock()
	defer r.console.mu.Unlock()
	return append([]string(nil), r.console.list...)
}

// Context ends when the test has waited long enough.
func (r *Rig) Context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	r.T.Cleanup(cancel)
	return ctx
}

// Call runs a tool; args is anything that marshals to a JSON object, or JSON text.
func (r *Rig) Call(name string, args any) *tool.Result {
	ctx, cancel := context.WithTimeout(context.Background(), Wait)
	defer cancel()
	return r.CallContext(ctx, name, args)
}

// CallContext is Call with a context.
func (r *Rig) CallContext(ctx context.Context, name string, args any) *tool.Result {
	var text []byte
	switch a := args.(type) {
	case nil:
		text = []byte("{}")
	case string:
		text = []byte(a)
	default:
		var err error
		if text, err = json.Marshal(a); err != nil {
			r.T.Fatalf("arguments of %s: %v", name, err)
		}
	}
	return r.Registry.Execute(ctx, tool.Call{Name: name, Arguments: text})
}

// Text is what a model reads of a result.
func Text(res *tool.Result) string {
	var parts []string
	for _, b := range res.Content {
		parts = append(parts, b.Text)
	}
	return strings.Join(parts, "\n")
}

// Mount mounts code and returns its id; it fails the test where that fails.
func (r *Rig) Mount(code string) string {
	r.T.Helper()
	res := r.Call("cordis_mount", map[string]string{"code": code})
	if res.IsError {
		r.T.Fatalf("mount: %s\n%s", Text(res), code)
	}
	var v struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(res.Value, &v); err != nil {
		r.T.Fatalf("mount: value %s: %v", res.Value, err)
	}
	return v.ID
}

// MountFails mounts code that must be refused and returns what the model reads.
func (r *Rig) MountFails(code string, has ...string) string {
	r.T.Helper()
	return r.Fails(r.Call("cordis_mount", map[string]string{"code": code}), has...)
}

// Unmount unmounts and returns the receipt's text.
func (r *Rig) Unmount(id string) string {
	r.T.Helper()
	return r.Works(r.Call("cordis_unmount", map[string]string{"id": id}))
}

// Inspect is the report of a section; name may be empty.
func (r *Rig) Inspect(what, name string) string {
	r.T.Helper()
	args := map[string]string{}
	if what != "" {
		args["what"] = what
	}
	if name != "" {
		args["name"] = name
	}
	return r.Works(r.Call("cordis_inspect", args))
}

// Works demands a success whose text has all of the given parts.
func (r *Rig) Works(res *tool.Result, has ...string) string {
	r.T.Helper()
	if res.IsError {
		r.T.Fatalf("unexpected error: %s", Text(res))
	}
	return r.has(res, has)
}

// Fails demands an error whose text has all of the given parts.
func (r *Rig) Fails(res *tool.Result, has ...string) string {
	r.T.Helper()
	if !res.IsError {
		r.T.Fatalf("unexpected success: %s", Text(res))
	}
	return r.has(res, has)
}

func (r *Rig) has(res *tool.Result, has []string) string {
	r.T.Helper()
	text := Text(res)
	for _, part := range has {
		if !strings.Contains(text, part) {
			r.T.Fatalf("the answer lacks %q:\n%s", part, text)
		}
	}
	return text
}

// Tool is the code of a plugin with one tool of that name, whose execute is the
// given body (with args, exec and ctx in scope) and which returns a string.
// Further lines go before the registration.
func Tool(name, body string, before ...string) string {
	return fmt.Sprintf(`return {
  name: %[1]q,
  inject: ['tools', 'timer'],
  apply(ctx) {
    %[3]s
    harness.registerTool(ctx, harness.defineTool({
      name: %[1]q, description: 'for a test', parameters: {},
      output: { schema: { type: 'string' }, render(_a, v) { return [{ type: 'text', text: v }] } },
      async execute(args, exec) { %[2]s },
    }))
  },
}`, name, body, strings.Join(before, "\n    "))
}
