package shell

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// rig is an agent with the tools, on real services.
type rig struct {
	*agenttest.Kit
	agent *agent.Agent
	tasks *tasks.Tasks
	dir   string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir()}
	r.Kit = agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{bash.Plugin(bash.Config{}), tasks.Plugin()}})
	r.Script("steps:\n- text: done\n")
	r.agent = r.Start(agent.Options{Plugins: []*cordis.Plugin{Plugin(Config{Dir: r.dir})}})
	r.tasks, _ = tasks.Service.Get(r.Root)
	return r
}

func (r *rig) callWith(ctx context.Context, call tool.Call) *tool.Result {
	call.Scope = r.agent.Scope()
	return r.Tools.Execute(ctx, call)
}

func (r *rig) call(name, args string) *tool.Result {
	return r.callWith(r.Context(), tool.Call{Name: name, Arguments: lossless.Text(args)})
}

func (r *rig) bash(command string) string {
	return text(r.call("bash", lossless.Obj(lossless.M("command", lossless.Str(command))).String()))
}

// background starts a command as a task, whose id is to be this.
func (r *rig) background(id, command string) {
	r.T.Helper()
	res := r.call("bash", lossless.Obj(lossless.M("command", lossless.Str(command)), lossless.M("run_in_background", lossless.Boolean(true))).String())
	if want := started(id); text(res) != want {
		r.T.Fatalf("%s, want %s", text(res), want)
	}
}

// ended waits for the end of a task, and until its agent was told.
func (r *rig) ended(id string) {
	r.T.Helper()
	if _, err := r.tasks.Wait(r.Context(), r.agent.Scope(), id); err != nil {
		r.T.Fatal(err)
	}
}

// until waits for what a task writes.
func (r *rig) until(id, want string) {
	r.T.Helper()
	decl, _ := cordis.LookupService("tasks")
	look := decl.Bind(r.tasks, r.agent.Context()).(tasks.ForPlugins) // a reader of its own
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		o, err := look.Output(id)
		if err != nil || time.Since(begun) > agenttest.Patience {
			r.T.Fatalf("task %s did not write %q: %v", id, want, err)
		}
		if strings.Contains(o.Text, want) {
			return
		}
	}
}

// told is what the agent was told of its tasks.
func (r *rig) told() []string {
	r.T.Helper()
	var out []string
	for _, s := range agenttest.Payloads[session.InboxSplice](r.T, r.agent.Session().Log) {
		for _, m := range s.Inserted {
			if m.Source.Kind != message.SourcePlugin || m.Source.Name != "tasks" || s.Target != session.NextStep {
				r.T.Errorf("told by %+v for %s", m.Source, s.Target)
			}
			for _, b := range m.Content {
				out = append(out, string(b.Text))
			}
		}
	}
	return out
}

func text(r *tool.Result) string {
	var all []string
	for _, b := range r.Content {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// times makes how long something took the same in every run.
func times(s string) string {
	for _, unit := range []string{" ms", " s"} {
		for {
			i := strings.Index(s, unit)
			if i < 1 || s[i-1] < '0' || s[i-1] > '9' {
				break
			}
			j := i
			for j > 0 && s[j-1] >= '0' && s[j-1] <= '9' {
				j--
			}
			s = s[:j] + "TIME" + s[i+len(unit):]
		}
	}
	return s
}
