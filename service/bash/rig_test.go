package bash_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == hostCommand {
		runHost(os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

// rig is a runtime with the service.
type rig struct {
	t    testing.TB
	root *cordis.Context
	bash *cordis.Fiber
}

func newRig(t testing.TB, cfg bash.Config) *rig {
	t.Helper()
	r := &rig{t: t, root: cordis.New()}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	r.bash = r.mount(bash.Plugin(cfg))
	t.Cleanup(func() {
		if _, err := r.root.Fiber().Dispose(within(t, time.Minute)); err != nil {
			t.Errorf("end the runtime: %v", err)
		}
	})
	return r
}

func (r *rig) mount(p *cordis.Plugin) *cordis.Fiber {
	r.t.Helper()
	f, err := r.root.Mount(p, nil)
	if err == nil {
		err = f.Await(within(r.t, time.Minute))
	}
	if err != nil {
		r.t.Fatalf("mount %s: %v", p.Name, err)
	}
	return f
}

// plugin mounts one that uses the service, as the mount of an id.
func (r *rig) plugin(id string) (bash.ForPlugins, *cordis.Fiber) {
	r.t.Helper()
	c := tool.WithMount(r.root, tool.Mount{Number: 1, ID: id, Plugin: id})
	var use bash.ForPlugins
	f, err := c.Mount(&cordis.Plugin{
		Name:   id,
		Inject: cordis.Require("bash"),
		Apply: func(c *cordis.Context, _ any) error {
			v, err := c.Use("bash")
			if err != nil {
				return err
			}
			d, _ := cordis.LookupService("bash")
			use = d.Bind(v, c).(bash.ForPlugins)
			return nil
		},
	}, nil)
	if err == nil {
		err = f.Await(within(r.t, time.Minute))
	}
	if err != nil {
		r.t.Fatalf("mount %s: %v", id, err)
	}
	return use, f
}

// run runs a command for a plugin of its own.
func (r *rig) run(c bash.Command) bash.RunResult {
	r.t.Helper()
	use, _ := r.plugin("dyn-1")
	return must(use.Run(within(r.t, time.Minute), c, nil))(r.t)
}

func line(text string) bash.Command { return bash.Command{Request: bash.Request{Command: text}} }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func dispose(t testing.TB, f *cordis.Fiber) {
	t.Helper()
	if _, err := f.Dispose(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code string) string {
	t.Helper()
	if got := service.CodeOf(err); got != code {
		t.Fatalf("code %q, want %s: %v", got, code, err)
	}
	e := new(service.Error)
	errors.As(err, &e)
	return e.Message
}

func exitCode(t testing.TB, r bash.RunResult, want int) {
	t.Helper()
	if r.ExitCode == nil || *r.ExitCode != want {
		t.Fatalf("exit code %v, signal %v, want %d; stdout %q stderr %q", deref(r.ExitCode), deref(r.Signal), want, r.Stdout.Text, r.Stderr.Text)
	}
}

func signaled(t testing.TB, r bash.RunResult, want string) {
	t.Helper()
	if r.Signal == nil || *r.Signal != want || r.ExitCode != nil {
		t.Fatalf("exit code %v, signal %v, want %s; stdout %q stderr %q", deref(r.ExitCode), deref(r.Signal), want, r.Stdout.Text, r.Stderr.Text)
	}
}

func deref[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}
