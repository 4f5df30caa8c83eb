package notice_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/notice"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

// plugins are those of an agent with the toolset.
func plugins() []*cordis.Plugin {
	return []*cordis.Plugin{notice.Plugin(), selfmod.Plugin(selfmod.Config{Worker: os.Getenv("DSH_TEST_WORKER"), MemoryMB: 16})}
}

// told are the notices in a session's log, and before which prompt each stands.
func told(t testing.TB, s *session.Session) []string {
	t.Helper()
	out := []string{}
	var waiting []string
	for _, p := range agenttest.Payloads[session.UserMessage](t, s.Log) {
		switch m := p.Message; {
		case m.Source == (message.Source{Kind: message.SourcePlugin, Name: notice.Name}):
			waiting = append(waiting, m.Text())
		case m.Source.Kind == message.SourceUser:
			for _, text := range waiting {
				out = append(out, m.Text()+": "+text)
			}
			waiting = nil
		}
	}
	for _, text := range waiting {
		out = append(out, ": "+text)
	}
	return out
}

// same demands notices that have these texts in them.
func same(t testing.TB, s *session.Session, want ...string) {
	t.Helper()
	got := told(t, s)
	if !slices.EqualFunc(got, want, strings.Contains) {
		t.Errorf("told were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func run(k *agenttest.Kit, a *agent.Agent, prompt string) {
	k.T.Helper()
	if end := k.Run(a, prompt); end.Kind != session.EndCompleted {
		k.T.Fatalf("%q ended %+v", prompt, end)
	}
}

// mounting is a step of a script that mounts plugins of these names.
func mounting(names ...string) string {
	step := "- calls:\n"
	for _, name := range names {
		step += fmt.Sprintf("  - {name: cordis_mount, arguments: {code: \"return { name: '%s', apply() {} }\"}}\n", name)
	}
	return step
}

const said = "- text: said\n"

// again opens a session that was closed, with a new agent.
func again(k *agenttest.Kit, a *agent.Agent) *agent.Agent {
	k.T.Helper()
	id := a.ID()
	if err := a.Close(k.Context()); err != nil {
		k.T.Fatal(err)
	}
	if err := a.Session().Close(k.Context()); err != nil {
		k.T.Fatal(err)
	}
	s, err := k.Store.Open(k.Context(), id)
	if err != nil {
		k.T.Fatal(err)
	}
	k.Own(s)
	return k.Start(agent.Options{Session: s, Plugins: plugins()})
}

func TestGone(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps:\n" + mounting("one", "two", "three") + "- calls:\n  - {name: cordis_unmount, arguments: {id: dyn-2}}\n" + said +
		said + said + mounting("four") + said + said)
	a := k.Start(agent.Options{Plugins: plugins()})
	run(k, a, "first")
	same(t, a.Session())

	a = again(k, a)
	if n := a.Session().Turn().Turn; n != 1 || a.Status() != agent.Idle {
		t.Errorf("a notice began a turn: %d, %s", n, a.Status())
	}
	a = again(k, a) // it was not told yet
	run(k, a, "second")
	const first = "second: This session goes on in a new runtime. The temporary Plugins of before are gone, with their tools, services, listeners and state: dyn-1 (one), dyn-3 (three). "
	same(t, a.Session(), first)

	a = again(k, a) // nothing new is gone
	run(k, a, "third")
	run(k, a, "fourth")
	same(t, a.Session(), first)

	a = again(k, a)
	run(k, a, "fifth")
	same(t, a.Session(), first, "fifth: This session goes on in a new runtime. The temporary Plugins of before are gone, with their tools, services, listeners and state: dyn-1 (four). ")

	// It is in no prefix.
	for _, h := range agenttest.Payloads[session.RequestHeader](t, a.Session().Log) {
		if strings.Contains(string(h.Header.System), "temporary Plugins of before") {
			t.Errorf("the system prompt tells it: %s", h.Header.System)
		}
	}
}

func TestReset(t *testing.T) {
	k := agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{timer.Plugin()}})
	code := strings.ReplaceAll(selfmodtest.Tool("hog", "const a = []; for (;;) a.push(new Uint8Array(1000000))"), "\n", " ")
	k.Script("steps:\n- calls:\n" + fmt.Sprintf("  - {name: cordis_mount, arguments: {code: %q}}\n", code) + "- calls:\n  - {name: hog}\n" + said + said + said)
	a := k.Start(agent.Options{Plugins: plugins()})
	changes := make(chan mount.Change, 10)
	_, err := mount.Happened.On(k.Root, func(_ context.Context, c mount.Change) {
		if c.Kind != mount.Came {
			changes <- c
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	run(k, a, "first")
	select {
	case c := <-changes:
		if c.Kind != mount.Reset || c.ID != "dyn-1" || c.Plugin != "hog" || c.Scope != a.Scope() || c.Reason == "" {
			t.Errorf("%+v", c)
		}
	case <-k.Context().Done():
		t.Fatal("its machine was not replaced")
	}
	run(k, a, "second")
	run(k, a, "third")
	got := told(t, a.Session())
	if len(got) != 1 || !strings.Contains(got[0], "The machine of these temporary Plugins was replaced.") || !strings.HasSuffix(got[0], ": dyn-1 (hog).") {
		t.Errorf("%q", got)
	}
}

func TestGolden(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps:\n" + mounting("one") + said + said)
	a := k.Start(agent.Options{Plugins: plugins()})
	run(k, a, "first")
	a = again(k, a)
	for n := range 23 {
		mount.Happened.Emit(t.Context(), k.Root, mount.Change{Kind: mount.Reset, ID: fmt.Sprint("dyn-", n+1), Plugin: "many", Scope: a.Scope()})
	}
	mount.Happened.Emit(t.Context(), k.Root, mount.Change{Kind: mount.Stopped, ID: "dyn-1", Plugin: "many", Scope: a.Scope()})
	mount.Happened.Emit(t.Context(), k.Root, mount.Change{Kind: mount.Went, ID: "dyn-2", Plugin: "many", Scope: a.Scope()})
	mount.Happened.Emit(t.Context(), k.Root, mount.Change{Kind: mount.Stopped, ID: "dyn-9", Plugin: "another session's"})
	run(k, a, "second")
	want, err := os.ReadFile("testdata/notices.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.Join(told(t, a.Session()), "\n\n")+"\n"); diff != "" {
		t.Error(diff)
	}
}

// TestToldAgain: a step that did not begin told nothing.
func TestToldAgain(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps:\n" + said + said)
	a := k.Start(agent.Options{Plugins: plugins()})
	mount.Happened.Emit(t.Context(), k.Root, mount.Change{Kind: mount.Reset, ID: "dyn-1", Plugin: "one", Scope: a.Scope()})
	h, err := agent.PreStep.On(a.Context(), func(ctx context.Context, _ agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
		if _, err := next(ctx); err != nil {
			return agent.Entry{}, err
		}
		return agent.Entry{Kind: agent.Reject, Reason: "not now"}, nil
	}, cordis.Prepend())
	if err != nil {
		t.Fatal(err)
	}
	if end := k.Run(a, "first"); end.Kind != session.EndBlocked {
		t.Fatalf("%+v", end)
	}
	same(t, a.Session())
	if err := h.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(k, a, "second")
	run(k, a, "third")
	same(t, a.Session(), "second: The machine of these temporary Plugins was replaced.")
}

func TestNeedsAnAgent(t *testing.T) {
	k := agenttest.New(t)
	f, err := k.Root.Mount(notice.Plugin(), nil)
	if err == nil {
		err = f.Await(k.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "mount it on the agent's context") {
		t.Error(err)
	}
}

// TestEnded: a toolset that is reloaded in a session is told, once; one that ends with
// its agent is what a resumed session tells of.
func TestEnded(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps:\n" + mounting("one", "two") + said + said + mounting("three") + said + said)
	memory := mount.NewMemory()
	toolset := selfmod.Plugin(selfmod.Config{Worker: os.Getenv("DSH_TEST_WORKER"), MemoryMB: 16, Memory: memory})
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{notice.Plugin(), toolset}})
	run(k, a, "first")
	for _, f := range k.Root.Runtime().Fibers() {
		if f.Plugin() == toolset {
			if _, err := f.Dispose(k.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	f, err := a.Context().Mount(toolset, nil)
	if err == nil {
		err = f.Await(k.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	run(k, a, "second")
	const told = "second: The toolset of the temporary Plugins was reloaded, reconfigured or disabled, and they ended with it, with their tools, services, listeners and state: dyn-1 (one), dyn-2 (two). "
	same(t, a.Session(), told)
	run(k, a, "third")
	same(t, a.Session(), told)
	a = again(k, a)
	run(k, a, "fourth")
	same(t, a.Session(), told, "fourth: This session goes on in a new runtime. The temporary Plugins of before are gone, with their tools, services, listeners and state: dyn-3 (three). ")
}
