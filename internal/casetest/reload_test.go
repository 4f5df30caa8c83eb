package casetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// greeter is a plugin file whose tool answers with a word.
func greeter(name, word string) string {
	return fmt.Sprintf(`export default {
  name: '%[1]s', inject: ['timer'],
  apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: '%[1]s', description: 'Greet.', parameters: { wait: { type: 'integer' } },
      output: { schema: { type: 'string' }, render: (args, v) => [{ type: 'text', text: v }] },
      async execute(args) { if (args.wait) await ctx.timeout(args.wait); return '%[2]s' },
    }))
  },
}
`, name, word)
}

// home is a dsh of its own, whose plugin files a test writes.
type home struct {
	t       *testing.T
	program string
	dir     string
}

func newHome(t *testing.T) *home {
	h := &home{t, Program(t), t.TempDir()}
	t.Setenv("DSH_HOME", h.dir)
	if err := os.Mkdir(filepath.Join(h.dir, "plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

// save writes a file as careful editors do: beside it, then in its place.
func (h *home) save(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		h.t.Fatal(err)
	}
}

func (h *home) start(ctx context.Context, args ...string) *Client {
	h.t.Helper()
	c, err := Start(ctx, h.program, append([]string{"mcp"}, args...)...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Kill() }) // where it did not end in order the test has said so
	return c
}

// until waits for what another process does.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("it did not happen: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (h *home) call(ctx context.Context, c *Client, tool, args string) Answer {
	h.t.Helper()
	wait, err := c.Call(tool, json.RawMessage(args))
	if err != nil {
		h.t.Fatal(err)
	}
	a, err := wait(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func (h *home) has(ctx context.Context, c *Client, tool string) bool {
	h.t.Helper()
	tools, err := c.Tools(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.Contains(tools, tool)
}

// TestReload: what is saved is live, or refused with the old version still serving.
func TestReload(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := newHome(t)
	h.save("plugins/greet.js", greeter("greet", "one"))
	c := h.start(ctx, "--services", "none")
	if got := h.call(ctx, c, "greet", `{}`).Text; got != "one" {
		t.Fatalf("it answers %q", got)
	}
	slow, err := c.Call("greet", json.RawMessage(`{"wait": 700}`))
	if err != nil {
		t.Fatal(err)
	}
	h.save("plugins/greet.js", greeter("greet", "two"))
	until(t, "the new version", func() bool {
		a := h.call(ctx, c, "greet", `{}`)
		if a.IsError {
			t.Fatalf("there was a moment without it: %s", a.Text)
		}
		return a.Text == "two"
	})
	if a, err := slow(ctx); err != nil || a.Text != "one" {
		t.Errorf("the running call did not end where it began: %q, %v", a.Text, err)
	}

	h.save("plugins/greet.js", "export default { name: 'greet', apply() { throw new Error('spoiled') } }")
	until(t, "the refusal", func() bool { return strings.Contains(c.Stderr(), "spoiled") })
	if got := h.call(ctx, c, "greet", `{}`).Text; got != "two" {
		t.Errorf("after a refusal it answers %q", got)
	}
	if a := h.call(ctx, c, "cordis_inspect", `{"what": "plugins"}`); !strings.Contains(a.Text, "spoiled") {
		t.Errorf("inspect does not tell of the refusal:\n%s", a.Text)
	}
	h.save("plugins/greet.js", greeter("greet", "three"))
	until(t, "what was mended", func() bool { return h.call(ctx, c, "greet", `{}`).Text == "three" })
	if a := h.call(ctx, c, "cordis_inspect", `{"what": "plugins"}`); strings.Contains(a.Text, "spoiled") {
		t.Errorf("inspect still tells of the refusal:\n%s", a.Text)
	}

	if err := os.Remove(filepath.Join(h.dir, "plugins/greet.js")); err != nil {
		t.Fatal(err)
	}
	until(t, "its end", func() bool { return !h.has(ctx, c, "greet") })
	if err := c.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "an answer to SIGHUP", func() bool { return strings.Contains(c.Stderr(), "nothing has changed") })
	if err := c.Close(closeWithin); err != nil {
		t.Error(err)
	}
}

// TestReloadTakesOver: a plugin file takes the names of a mount over: no call finds the
// tool missing or doubled, the running one ends where it began, and the mount is gone.
func TestReloadTakesOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := newHome(t)
	c := h.start(ctx, "--services", "none")
	code, err := json.Marshal(map[string]string{"code": strings.Replace(greeter("greet", "mounted"), "export default", "return", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if a := h.call(ctx, c, "cordis_mount", string(code)); a.IsError {
		t.Fatal(a.Text)
	}
	slow, err := c.Call("greet", json.RawMessage(`{"wait": 1500}`))
	if err != nil {
		t.Fatal(err)
	}
	h.save("plugins/greet.js", greeter("greet", "kept"))
	until(t, "the file", func() bool {
		tools, err := c.Tools(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(slices.DeleteFunc(tools, func(s string) bool { return s != "greet" })); n != 1 {
			t.Fatalf("there are %d of it", n)
		}
		a := h.call(ctx, c, "greet", `{}`)
		if a.IsError {
			t.Fatalf("there was a moment without it: %s", a.Text)
		}
		return a.Text == "kept"
	})
	if a, err := slow(ctx); err != nil || a.Text != "mounted" {
		t.Errorf("the running call did not end where it began: %q, %v", a.Text, err)
	}
	if a := h.call(ctx, c, "cordis_inspect", `{"what": "temporary", "name": "dyn-1"}`); !a.IsError || !strings.Contains(a.Text, "greet.js") {
		t.Errorf("inspect does not say what became of the mount: %s", a.Text)
	}
	if a := h.call(ctx, c, "cordis_unmount", `{"id": "dyn-1"}`); !a.IsError {
		t.Errorf("the mount was still there: %s", a.Text)
	}
	if err := c.Close(closeWithin); err != nil {
		t.Error(err)
	}
}

// TestReloadToolset: an edit that disables the toolset ends every mount, and one that
// enables it again mounts nothing.
func TestReloadToolset(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	h := newHome(t)
	c := h.start(ctx, "--services", "none")
	code, err := json.Marshal(map[string]string{"code": strings.Replace(greeter("greet", "mounted"), "export default", "return", 1)})
	if err != nil {
		t.Fatal(err)
	}
	if a := h.call(ctx, c, "cordis_mount", string(code)); a.IsError || !h.has(ctx, c, "greet") {
		t.Fatalf("not mounted: %s", a.Text)
	}
	h.save("cordis.yml", "- {id: tool-cordis, disabled: true}\n")
	until(t, "the end of the toolset", func() bool { return !h.has(ctx, c, "cordis_mount") })
	if h.has(ctx, c, "greet") {
		t.Error("the mount outlives the toolset")
	}
	h.save("cordis.yml", "- {id: tool-cordis, config: {vmTimeoutMs: 700}}\n")
	until(t, "the toolset again", func() bool { return h.has(ctx, c, "cordis_mount") })
	if h.has(ctx, c, "greet") {
		t.Error("the mount came back")
	}
	if a := h.call(ctx, c, "cordis_inspect", `{"what": "temporary"}`); !strings.Contains(a.Text, "dyn-1") {
		t.Errorf("inspect does not say what became of the mount:\n%s", a.Text)
	}
	if err := c.Close(closeWithin); err != nil {
		t.Error(err)
	}
}

// TestReloadKilled: a program that is killed at any point of a reload starts again
// with the old or the new version.
func TestReloadKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	h := newHome(t)
	h.save("plugins/greet.js", greeter("greet", "v0"))
	for i := 1; i <= 8; i++ {
		c := h.start(ctx, "--services", "none")
		if got := h.call(ctx, c, "greet", `{}`).Text; got != fmt.Sprintf("v%d", i-1) {
			t.Fatalf("after kill %d it answers %q", i-1, got)
		}
		h.save("plugins/greet.js", greeter("greet", fmt.Sprintf("v%d", i)))
		time.Sleep(time.Duration(i) * 20 * time.Millisecond) // where in the reload is the point
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShutdownDuringReload: asked to end while a reload waits for a plugin that hangs,
// the program ends in time.
func TestShutdownDuringReload(t *testing.T) {
	for name, hang := range map[string]string{
		"apply_never_ends": "console.log('inside'); await new Promise(() => {})",
		"endless_loop":     "console.log('inside'); for (;;) {}",
		"slow":             "console.log('inside'); await ctx.timeout(3000)",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			c := h.start(t.Context())
			if h.has(t.Context(), c, "greet") {
				t.Fatal("there is a tool before its file")
			}
			h.save("plugins/hang.js", "export const inject = ['timer'];\nexport async function apply(ctx) { "+hang+" }\n")
			until(t, "the plugin starts", func() bool { return strings.Contains(c.Stderr(), "inside") })
			if err := c.Close(shutdownWithin); err != nil {
				t.Errorf("%v; standard error:\n%s", err, c.Stderr())
			}
		})
	}
}
