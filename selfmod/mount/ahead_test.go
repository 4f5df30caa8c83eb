package mount_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

// TestServiceGoesDuringLoad: the service that a plugin injects goes while its code
// runs. The worker may have gone on to apply; the mount is pending all the same,
// and its apply runs once, in a fresh machine, when the service is back.
func TestServiceGoesDuringLoad(t *testing.T) {
	t.Parallel()
	root := cordis.New()
	start := func(p *cordis.Plugin) *cordis.Fiber {
		f, err := root.Mount(p, nil)
		if err == nil {
			err = f.Await(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	registry := tool.NewRegistry(root)
	clock := start(timer.Plugin())
	box, err := sandbox.New(sandbox.Config{Exe: os.Getenv("DSH_TEST_WORKER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Close)
	var gone atomic.Bool
	set, err := mount.NewSet(root, mount.Config{Sandbox: box, Registry: registry, Console: func(line string) {
		if strings.Contains(line, "the body") && gone.CompareAndSwap(false, true) {
			if _, err := clock.Dispose(t.Context()); err != nil { // before the worker's answer is read
				t.Error(err)
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := root.Fiber().Dispose(context.Background()); err != nil {
			t.Error(err)
		}
		set.Wait()
	})
	mounted, err := set.Mount(t.Context(), `console.log('the body'); let times = 0
		return { name: 'x', inject: ['timer'], apply(ctx) {
			if (++times > 1) throw new Error('applied twice')
			ctx.on('tools/change', () => {})
		} }`)
	if err != nil {
		t.Fatal(err)
	}
	m := mounted.Mount
	if !gone.Load() || m.StateText() != "pending" {
		t.Fatalf("timer gone: %t; the mount is %s", gone.Load(), m.StateText())
	}
	if n := m.Came(); n.Listeners != 0 {
		t.Errorf("it registered %+v", n)
	}
	start(timer.Plugin())
	if err := m.Fiber().Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := m.Came(); m.StateText() != "running" || n.Listeners != 1 || m.Respawns() != 0 || len(m.Faults()) != 0 {
		t.Errorf("%s, %+v, %d respawns, %v", m.StateText(), n, m.Respawns(), m.Faults())
	}
	if lines := m.Lines(); strings.Count(strings.Join(lines, "\n"), "the body") != 2 {
		t.Errorf("it is not a fresh machine: %q", lines)
	}
}
