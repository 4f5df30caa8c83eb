package shell

import (
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
