package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// TestDenials: the end of a turn names what was denied in all of it.
func TestDenials(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		want  string
	}{
		"one":     {"[{calls: [{name: deny, arguments: {act: run a}}]}, {text: ok}]", "completed, but 1 act was denied: no run a"},
		"two":     {"[{calls: [{name: deny, arguments: {act: run a}}]}, {calls: [{name: deny, arguments: {act: edit b}}]}, {text: ok}]", "completed, but 2 acts were denied: run a; edit b. The last: no edit b"},
		"again":   {"[{calls: [{name: deny, arguments: {act: run a}}]}, {calls: [{name: deny, arguments: {act: run a}}]}, {text: ok}]", "completed, but 2 acts were denied: run a. The last: no run a"},
		"bounded": {"[{calls: [" + strings.Repeat("{name: many}, ", 3) + "]}, {text: ok}]", "completed, but 12 acts were denied: act 1; act 2; act 3; act 4; act 5; act 6; act 7; act 8; and 4 more. The last: no act 12"},
	} {
		t.Run(name, func(t *testing.T) {
			k := agenttest.New(t)
			k.Script("steps: " + c.steps)
			var a *agent.Agent
			n := 0
			deny := func(act string) error {
				n++
				id := fmt.Sprint(n)
				_, err := a.Session().Append(session.ApprovalAsked{ID: id, Summary: act}, session.ApprovalDecided{ID: id, Decision: "deny", Reason: "no " + act})
				return err
			}
			a = k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("deny", func(_ context.Context, x *tool.Exec) (string, error) {
				var args struct{ Act string }
				err := json.Unmarshal(x.Arguments, &args)
				return "", errors.Join(err, deny(args.Act), errors.New("denied"))
			}), define("many", func(context.Context, *tool.Exec) (string, error) {
				for range 4 {
					if err := deny(fmt.Sprintf("act %d", n+1)); err != nil {
						return "", err
					}
				}
				return "", errors.New("denied")
			}))}})
			end := k.Run(a, "go")
			wantEnd(t, end, session.EndDenied)
			if end.Detail != c.want {
				t.Errorf("got  %s\nwant %s", end.Detail, c.want)
			}
		})
	}
}
