package compact

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fataler is what tests and properties have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// newSession returns a session in memory; the caller closes it.
func newSession(t fataler) *session.Session {
	t.Helper()
	s, err := memory.New().Create(context.Background(), session.Meta{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t fataler, s *session.Session, payloads ...session.Payload) {
	t.Helper()
	if _, err := s.Append(payloads...); err != nil {
		t.Fatal(err)
	}
}

// step appends a whole step; each call is "tool:text of its result".
func step(t fataler, s *session.Session, turn, n int, prompt, answer string, calls ...string) {
	t.Helper()
	add(t, s, session.StepStart{Turn: turn, Step: n})
	if prompt != "" {
		add(t, s, sessiontest.User(fmt.Sprintf("u-%d-%d", turn, n), prompt))
	}
	if _, ok := s.Header(); !ok {
		add(t, s, sessiontest.Header(session.HeaderInitial, "echo"))
	}
	var blocks []message.Block
	for i, c := range calls {
		name, _, _ := strings.Cut(c, ":")
		blocks = append(blocks, sessiontest.CallBlock(fmt.Sprintf("c%d", i), name, "{}"))
	}
	add(t, s, sessiontest.Answer(turn, n, fmt.Sprintf("a-%d-%d", turn, n), answer, blocks...))
	for i, c := range calls {
		_, text, _ := strings.Cut(c, ":")
		add(t, s, sessiontest.Call(turn, n, blocks[i]), sessiontest.Result(turn, n, blocks[i].ID, text))
	}
	add(t, s, session.StepEnd{Turn: turn, Step: n})
}

func endTurn(t fataler, s *session.Session, turn int) {
	t.Helper()
	add(t, s, session.TurnEnd{Turn: turn, Reason: session.EndReason{Kind: session.EndCompleted}})
}

// answers gives an ask that answers with the texts, one after the other, and then
// with the last one; what it was asked is in asked.
func answers(asked *[]agent.OneShot, texts ...string) func(context.Context, agent.OneShot) (*llm.Answer, error) {
	return func(ctx context.Context, o agent.OneShot) (*llm.Answer, error) {
		*asked = append(*asked, o)
		text := texts[min(len(*asked), len(texts))-1]
		if code, failed := strings.CutPrefix(text, "!"); failed {
			return nil, llm.Fail(code, "scripted")
		}
		return &llm.Answer{Content: []message.Block{message.Plain(text)}, Reason: llm.Stop}, ctx.Err()
	}
}

// Valid says what of a conversation no provider would take. The tests from outside
// use it, too.
func Valid(messages []message.Message) error {
	var open []string // calls that wait for their results
	for i, m := range messages {
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if i == 0 && m.Role != message.User {
			return fmt.Errorf("the conversation begins with the %s", m.Role)
		}
		if b := m.Content[0]; b.Type == message.ResultBlock {
			if len(open) == 0 || open[0] != b.CallID {
				return fmt.Errorf("message %d is the result of %q; %q wait", i, b.CallID, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Errorf("message %d comes before the results of %q", i, open)
		}
		for _, c := range m.Calls() {
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q have no result", open)
	}
	return nil
}

// seen is what the model sees.
func seen(s *session.Session) []message.Message {
	var messages []message.Message
	for _, n := range s.Surface() {
		messages = append(messages, n.Message)
	}
	return messages
}
