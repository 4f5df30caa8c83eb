package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/tool"
)

func TestBackground(t *testing.T) {
	r := newRig(t)
	check := func(name, args, want string) {
		t.Helper()
		if diff := cmp.Diff(want, times(text(r.call(name, args)))); diff != "" {
			t.Errorf("%s %s: %s", name, args, diff)
		}
	}
	check("task_list", `{}`, "No background tasks.")
	check("task_output", `{"task_id":"t1"}`, `Error: there is no background task "t1": there are none here`)
	r.background("t1", "echo up; sleep 300")
	r.until("t1", "up")
	check("task_output", `{"task_id":"t1"}`, "Task t1 (running for TIME): echo up; sleep 300\n\nup")
	check("task_output", `{"task_id":"t1","wait_ms":20}`, "Task t1 (running for TIME): echo up; sleep 300\n\n(no new output)")
	r.background("t2", "echo down; exit 3")
	r.ended("t2")
	check("task_list", `{}`, "t1 (running for TIME): echo up; sleep 300\nt2 (failed, exit code 3, after TIME): echo down; exit 3")
	check("task_output", `{"task_id":"t2"}`, "Task t2 (failed, exit code 3, after TIME): echo down; exit 3\n\ndown")
	check("task_kill", `{"task_id":"t1"}`, "Task t1 (killed, SIGTERM, after TIME): echo up; sleep 300")
	check("task_kill", `{"task_id":"t1"}`, "It had ended before.\nTask t1 (killed, SIGTERM, after TIME): echo up; sleep 300")
	check("task_kill", `{"task_id":"t9"}`, `Error: there is no background task "t9"; there are t1, t2 (of those that ended, the last 32 are remembered)`)
	check("task_output", `{"task_id":"t1","wait_ms":600001}`, "Error: wait_ms is 600001; it must be from 0 to 600000")
	want := []string{"Background task t2 has ended (failed, exit code 3, after TIME): echo down; exit 3\nRead the rest of its output with task_output."}
	var got []string
	for _, m := range r.told() {
		got = append(got, times(m))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("told: %s", diff)
	}
}

func TestEndings(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct{ args, want string }{
		{`"command":"true"`, "completed, exit code 0, after TIME"},
		{`"command":"exit 7"`, "failed, exit code 7, after TIME"},
		{`"command":"kill -9 $$"`, "killed, SIGKILL, after TIME"},
		{`"command":"sleep 300","timeout_ms":100`, "killed, timed out after TIME, after TIME"},
	} {
		r.call("bash", `{`+c.args+`,"run_in_background":true}`)
		id := "t" + strconv.Itoa(i+1)
		r.ended(id)
		info, err := r.tasks.Get(r.agent.Scope(), id)
		if got := times(valueOf(info, time.Now()).state()); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.args, got, err)
		}
	}
	if n := len(r.told()); n != 4 {
		t.Errorf("told %d times", n)
	}
}

// TestWaitTellsTheEnd: who waits for a task learns of its end by the answer, and
// by no message besides.
func TestWaitTellsTheEnd(t *testing.T) {
	r := newRig(t)
	r.background("t1", "sleep 0.2")
	got := times(text(r.call("task_output", `{"task_id":"t1","wait_ms":30000}`)))
	if got != "Task t1 (completed, exit code 0, after TIME): sleep 0.2\n\n(no new output)" {
		t.Error(got)
	}
	if told := r.told(); told != nil {
		t.Errorf("told %q", told)
	}
}

// TestWaitForOutput: who waits for a task that does not end gets what it writes when
// it writes it.
func TestWaitForOutput(t *testing.T) {
	r := newRig(t)
	r.background("t1", "echo up; until [ -e go ]; do sleep 0.02; done; echo asked; sleep 300")
	const wait = `{"task_id":"t1","wait_ms":600000}`
	if got := text(r.call("task_output", wait)); !strings.HasPrefix(got, "Task t1 (running for ") || !strings.HasSuffix(got, "\n\nup") {
		t.Error(got)
	}
	answer := make(chan string)
	go func() { answer <- text(r.call("task_output", wait)) }()
	r.bash("touch go")
	if got := <-answer; !strings.HasSuffix(got, "\n\nasked") {
		t.Error(got)
	}
}

// TestWaitIsAborted: the end of a task that a cancelled call would have told is told
// by a message.
func TestWaitIsAborted(t *testing.T) {
	r := newRig(t)
	r.background("t1", "until [ -e go ]; do sleep 0.02; done")
	ctx, cancel := context.WithCancel(r.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.callWith(ctx, tool.Call{Name: "task_output", Arguments: lossless.Text(`{"task_id":"t1","wait_ms":30000}`)})
	}()
	cancel()
	<-ended
	r.bash("touch go")
	r.ended("t1")
	if n := len(r.told()); n != 1 {
		t.Errorf("told %d times", n)
	}
}

func TestLongOutput(t *testing.T) {
	r := newRig(t)
	r.background("t1", fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", limits.TaskOutput+100))
	r.ended("t1")
	got := text(r.call("task_output", `{"task_id":"t1"}`))
	for _, want := range []string{
		"\n[100 bytes before this were not read in time and are gone]\nxxx",
		fmt.Sprintf("xxx\n[%d more bytes are there already: call task_output again]\n[all of the output is in /", limits.TaskOutput-limits.TaskRead),
		", which grep, head and tail can read]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s … %s", want, got[:200], got[len(got)-300:])
		}
	}
}

func TestTooManyTasks(t *testing.T) {
	r := newRig(t)
	for i := range limits.TasksRunning {
		r.background("t"+strconv.Itoa(i+1), "sleep 300")
	}
	got := text(r.call("bash", `{"command":"sleep 300","run_in_background":true}`))
	if !strings.HasPrefix(got, "Error: 10 background tasks run already, as many as may: t1, t2, ") || !strings.HasSuffix(got, ". Wait for one to end, or kill one") {
		t.Error(got)
	}
	if got := r.bash("echo still"); got != "still" { // the foreground has room
		t.Error(got)
	}
}

// TestWithoutAgents: the tools work for any client of the registry.
func TestWithoutAgents(t *testing.T) {
	root := cordis.New()
	for _, p := range []*cordis.Plugin{tool.Plugin(), bash.Plugin(bash.Config{Dir: t.TempDir()}), tasks.Plugin(), Plugin(Config{})} {
		f, err := root.Mount(p, nil)
		if err == nil {
			err = f.Await(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if _, err := root.Fiber().Dispose(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	tools, _ := tool.Service.Get(root)
	call := func(name, args string) string {
		return text(tools.Execute(t.Context(), tool.Call{Name: name, Arguments: lossless.Text(args)}))
	}
	if got := call("bash", `{"command":"echo a","run_in_background":true}`); !strings.HasPrefix(got, "started background task t1\n") {
		t.Error(got)
	}
	if got := call("task_output", `{"task_id":"t1","wait_ms":30000}`); !strings.HasSuffix(got, "\n\na") {
		t.Error(got)
	}
}

func TestTaskCards(t *testing.T) {
	r := newRig(t)
	r.background("t1", "echo a")
	r.ended("t1")
	for name, c := range map[string]struct{ tool, args, call, result string }{
		"output": {"task_output", `{"task_id":"t1"}`, `{"type":"generic","title":"Read the output of task t1","kind":"read"}`, `{"type":"terminal","output":"a\n"}`},
		"list":   {"task_list", `{}`, `{"type":"generic","title":"List background tasks","kind":"read"}`, ""},
		"kill":   {"task_kill", `{"task_id":"t1"}`, `{"type":"generic","title":"Kill task t1","kind":"execute"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := lossless.Text(c.args)
			if got := card(t, r.Tools.PresentCall(t.Context(), c.tool, r.agent.Scope(), args)); got != c.call {
				t.Error(cmp.Diff(c.call, got))
			}
			res := r.call(c.tool, c.args)
			if got := card(t, r.Tools.PresentResult(t.Context(), c.tool, r.agent.Scope(), args, res)); c.result != "" && got != c.result {
				t.Error(cmp.Diff(c.result, got))
			}
		})
	}
}

// TestUnfinishedKill: what does not end soon is said to go on.
func TestUnfinishedKill(t *testing.T) {
	v, err := lossless.From(taskKilled{taskValue: taskValue{ID: "t1", Kind: "test", Label: "deaf", Status: "running", RanMs: 5000}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := renderKill(t.Context(), nil, v.Encode())
	if want := "It was told to end and has not ended yet: you will be told when it has.\nTask t1 (running for 5 s): deaf"; err != nil || got[0].Text != want {
		t.Errorf("%v, %v", got, err)
	}
}
