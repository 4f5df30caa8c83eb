package session_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// TestPayloads: every payload comes back from its event with every field.
func TestPayloads(t *testing.T) {
	after := int64(1500)
	failure := message.Failure{Message: "m", Code: "RATE_LIMIT", Status: 429, RetryAfterMs: &after, RequestID: "r", Permanent: true}
	usage := &message.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1}
	obj := lossless.Obj(lossless.M("a", lossless.Arr(lossless.Int(1), lossless.Str("<&>"))))
	said := sessiontest.User("q", "x").Message
	answer := sessiontest.Answer(1, 1, "a", "x", sessiontest.CallBlock("c", "echo", "{}"))
	answer.Usage, answer.Op, answer.Sources = usage, session.Op{Kind: session.Append}, []int64{2}
	user := op(sessiontest.User("u", "x"), session.Op{Kind: session.Append})
	result := with(sessiontest.Result(1, 1, "c", "x"), "CODE")
	result.Meta, result.Op = obj, session.Op{Kind: session.Append}
	header := sessiontest.Header(session.HeaderInitial, "a")
	header.Header.AdapterDefaults = lossless.Obj(lossless.M("maxTokens", lossless.Boolean(true)))
	block := message.Plain("x")
	want := []session.Payload{
		session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1},
		session.Chunk{Turn: 1, Step: 1, Chunk: message.Chunk{Type: message.BlockEnd, Index: 2, BlockType: message.TextBlock, Text: "t", ID: "i", Name: "n",
			Block: &block, Usage: usage, Reason: message.Failed, Failure: &failure, ReplayState: obj}},
		user, header, answer, session.Call{Turn: 1, Step: 1, CallID: "c", Name: "echo", Arguments: "{}"}, result,
		session.StepEnd{Turn: 1, Step: 1},
		session.TurnEnd{Turn: 1, Reason: session.EndReason{Kind: session.EndAborted, Abort: &session.AbortReason{Kind: "hook", Text: "t"}, Error: &failure, Detail: "d"}},
		session.RequestContext{Provider: "p", Model: "m", ContextWindow: 9},
		session.Title{Title: "t", Source: "user"},
		session.InboxSplice{Target: session.NextStep, Inserted: []message.Message{said}},
		session.InboxSplice{Target: session.NextStep, Start: 0, RemovedCount: 1, Outcome: "canceled"},
		session.Preset{AgentPreset: "p"}, session.Todo{Todos: []session.TodoItem{{Content: "c", Status: "pending"}}},
		session.Retry{Turn: 1, Step: 1, Provider: "p", Policy: "normal", Attempt: 1, DelayMs: 500, Failure: failure}, session.RetryStarted{Turn: 1, Step: 1, Attempt: 1},
		session.LLMCall{Purpose: "title", Owner: "o", Request: obj, Answer: &said, Failure: &failure, Usage: usage},
		session.PermissionMode{Mode: "ask", Source: "user"},
		session.ApprovalAsked{ID: "i", CallID: "c", Tool: "bash", Mount: "dyn-1", Summary: "s", Detail: obj},
		session.ApprovalDecided{ID: "i", Decision: "allow", Scope: "once", Source: "user", Reason: "r"},
		session.ApprovalRule{Rule: "bash(ls)", Decision: "allow", SourceHash: "h"},
		session.CompactStart{ID: "i", Reason: "full"}, session.CompactEnd{ID: "i", Outcome: "failed", Replaced: 2, Failure: &failure},
		session.Raw{Type: "newer/thing", Data: obj},
	}
	l := newLog(t)
	for i, p := range want {
		e := appended(t, l, p)[0]
		read, err := session.ParseEvent(e.Line())
		if err != nil {
			t.Fatal(err)
		}
		got, err := read.Payload()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(p, got, cmp.Comparer(lossless.Equal)); d != "" {
			t.Errorf("%d %s:\n%s", i, e.Type, d)
		}
		if text, err := json.Marshal(e); err != nil || !json.Valid(text) {
			t.Error(err)
		}
	}
	h, ok := l.Header()
	if !ok || !h.Equal(header.Header) {
		t.Errorf("%+v", h)
	}
	h.AdapterDefaults = lossless.Obj(lossless.M("maxTokens", lossless.Boolean(false)))
	none := header.Header
	none.AdapterDefaults = lossless.Value{}
	if h.Equal(header.Header) || !h.Equal(none) {
		t.Error("defaults of which none is true count")
	}
}
