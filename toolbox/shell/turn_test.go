package shell

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/session"
)

// TestModelLearnsOfTheEnd: through the real loop, what a task ended with is in the
// request after it, and in the log alone.
func TestModelLearnsOfTheEnd(t *testing.T) {
	k := agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{bash.Plugin(bash.Config{}), tasks.Plugin()}})
	k.Script(`
steps:
- calls: [{name: bash, arguments: {command: "exit 4", run_in_background: true}}]
- expect: {toolResults: [{contains: started background task t1}]}
  text: it runs
- text: I know
`)
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{Plugin(Config{Dir: t.TempDir()})}})
	if end := k.Run(a, "go"); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	service, _ := tasks.Service.Get(k.Root)
	if _, err := service.Wait(k.Context(), a.Scope(), "t1"); err != nil {
		t.Fatal(err)
	}
	if end := k.Run(a, "and now?"); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	sent := k.Recorder.Sent(a.ID())
	body := string(sent[len(sent)-1].Body)
	if n := strings.Count(body, "Background task t1 has ended (failed, exit code 4, after "); n != 1 {
		t.Errorf("it is told %d times: %s", n, body)
	}
}

// TestKilledIsKilled: what a model calls after task_kill, in the same step, finds the
// task ended, also where it does not end at once.
func TestKilledIsKilled(t *testing.T) {
	k := agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{bash.Plugin(bash.Config{}), tasks.Plugin()}})
	k.Script(`
steps:
- calls:
  - {name: bash, arguments: {command: "trap 'sleep 0.1; exit 3' TERM; echo up; while :; do sleep 0.01; done", run_in_background: true}}
  - {name: task_output, arguments: {task_id: t1, wait_ms: 600000}}
  - {name: task_kill, arguments: {task_id: t1}}
  - {name: task_output, arguments: {task_id: t1}}
  - {name: task_list, arguments: {}}
- expect: {toolResults: [{contains: started}, {contains: up}, {contains: "Task t1 (killed"}, {contains: "Task t1 (killed"}, {contains: "t1 (killed"}]}
  text: it is gone
`)
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{Plugin(Config{Dir: t.TempDir()})}})
	if end := k.Run(a, "go"); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
}

// TestNobodyToTell: that an agent has gone before its task is no news.
func TestNobodyToTell(t *testing.T) {
	k := agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{bash.Plugin(bash.Config{}), tasks.Plugin()}})
	k.Script("steps:\n- text: done\n")
	a := k.Start(agent.Options{})
	var logged strings.Builder
	if _, err := k.Root.Export(cordis.Exporter{Level: slog.LevelWarn, Export: cordis.NewConsole(&logged, 16)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	(&shell{c: k.Root}).notify(a, tasks.Info{ID: "t1"})
	if logged.Len() > 0 {
		t.Errorf("logged %s", &logged)
	}
}
