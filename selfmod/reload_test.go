package selfmod_test

import (
	"os"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// TestToolsetReload: a toolset that is reloaded takes every mount and its worker with
// it; nothing is mounted again, it says why they are gone, and ids go on.
func TestToolsetReload(t *testing.T) {
	t.Parallel()
	memory := mount.NewMemory()
	r := selfmodtest.New(t, selfmod.Config{Memory: memory})
	again := func(f *cordis.Fiber) *cordis.Fiber {
		t.Helper()
		if _, err := f.Dispose(r.Context()); err != nil {
			t.Fatal(err)
		}
		f, err := r.Root.Mount(selfmod.Plugin(selfmod.Config{Worker: os.Getenv("DSH_TEST_WORKER"), Memory: memory}), nil)
		if err == nil {
			err = f.Await(r.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	r.Mount(says("hi"))
	r.Mount("return { name: 'waits', inject: ['absent'], apply() {} }")
	r.Unmount(r.Mount("return { name: 'brief', apply() {} }"))
	f := again(r.Toolset)
	if res := r.Call("say", nil); !res.IsError {
		t.Errorf("a mount outlived its toolset: %s", selfmodtest.Text(res))
	}
	const note = "Gone with the toolset, when that was reloaded, reconfigured or disabled: dyn-1 (say), dyn-2 (waits). Nothing is mounted again by itself"
	report := r.Inspect("temporary", "")
	if !strings.Contains(report, note) || !strings.Contains(report, "No temporary Plugins are running") || !strings.Contains(report, "not started") {
		t.Errorf("inspect says\n%s", report)
	}
	r.Fails(r.Call("cordis_inspect", `{"what":"temporary","name":"dyn-1"}`), "it ended with the toolset, when that was reloaded, reconfigured or disabled")
	r.Fails(r.Call("cordis_unmount", `{"id":"dyn-3"}`), "dyn-3 was unmounted")
	if id := r.Mount(says("again")); id != "dyn-4" {
		t.Errorf("the next id is %s", id)
	}
	// The next toolset that ends with a mount is what is told of then.
	again(f)
	if report := r.Inspect("temporary", ""); !strings.Contains(report, "disabled: dyn-4 (say). Nothing") {
		t.Errorf("inspect says\n%s", report)
	}
}

// TestToolsetStaged: a toolset that takes another's place in one step is there all the
// time, and what the other had mounted goes.
func TestToolsetStaged(t *testing.T) {
	t.Parallel()
	memory := mount.NewMemory()
	r := selfmodtest.New(t, selfmod.Config{Memory: memory})
	r.Mount(says("hi"))
	r.Mount("return (ctx) => ctx.on('tools/pre-execute', (exec, next) => next())")
	rt := r.Root.Runtime()
	st := rt.NewStage(cordis.StageOptions{Replaces: []*cordis.Fiber{r.Toolset}})
	f, err := st.On(r.Root).Mount(selfmod.Plugin(selfmod.Config{Worker: os.Getenv("DSH_TEST_WORKER"), Memory: memory}), nil)
	if err == nil {
		err = f.Await(r.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	stop, calling := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(calling)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if res := r.Call("cordis_inspect", `{"what":"tools"}`); res.IsError {
				t.Errorf("inspect: %s", selfmodtest.Text(res))
				return
			}
		}
	}()
	if err := st.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Toolset.Dispose(r.Context()); err != nil {
		t.Error(err)
	}
	close(stop)
	<-calling
	if report := r.Inspect("temporary", ""); !strings.Contains(report, "disabled: dyn-1 (say), dyn-2 (") {
		t.Errorf("inspect says\n%s", report)
	}
	if id := r.Mount(says("again")); id != "dyn-3" {
		t.Errorf("the next id is %s", id)
	}
	r.Works(r.Call("say", nil))
}
