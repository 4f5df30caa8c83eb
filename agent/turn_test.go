package agent_test

import (
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/session"
)

func TestTurnOfOneStep(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps:\n- text: hello\n")
	a := k.Start(agent.Options{})
	if end := k.Run(a, "hi there\nmore"); end.Kind != session.EndCompleted {
		t.Fatalf("end = %+v", end)
	}
	for _, e := range a.Session().Events(0) {
		t.Log(e.Line())
	}
}
