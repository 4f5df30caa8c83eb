package agent

import (
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// The events of agents. A listener hears those of the agents whose scope is its
// context's or below it; one without a scope hears all. They are dispatched on the
// agent's goroutine, but for Created and SessionStarted, on that of whoever starts the
// agent, Disposed, on that of its unloading fiber, and InboxInserted and
// InboxDiscarded, on that of whoever sends or cancels.
var (
	// Created tells that an agent is there. Its plugins are mounted.
	Created = cordis.NewEmit[Lifecycle]("agent/created")
	// Disposed tells that an agent that was created has gone.
	Disposed = cordis.NewEmit[Lifecycle]("agent/disposed")
	// SessionStarted tells, after Created, whether the session is new.
	SessionStarted = cordis.NewEmit[SessionStart]("agent/session-start")
	// StatusChanged tells that a turn is about to begin, or that the agent is idle
	// again.
	StatusChanged = cordis.NewEmit[StatusChange]("agent/status", cordis.ForPlugins())
	// InboxInserted tells that messages were put into the inbox.
	InboxInserted = cordis.NewEmit[InboxChange]("agent/inbox/inserted", cordis.ForPlugins())
	// InboxClaimed tells that messages were taken from the inbox for a step.
	InboxClaimed = cordis.NewEmit[InboxChange]("agent/inbox/claimed", cordis.ForPlugins())
	// InboxDiscarded tells that waiting messages were dropped by a cancellation.
	InboxDiscarded = cordis.NewEmit[InboxChange]("agent/inbox/discarded", cordis.ForPlugins())
	// Errored tells of every failure that ended a turn, and of failures that could not
	// be logged.
	Errored = cordis.NewEmit[Failure]("agent/error", cordis.ForPlugins())

	// PreStep decides whether a step begins, and with which messages. The log is
	// between two steps, so a listener may replace nodes of the surface.
	PreStep = cordis.NewWaterfall[StepPlan, Entry]("agent/pre-step")
	// Requesting decides the config of a request, before every attempt.
	Requesting = cordis.NewWaterfall[RequestPlan, llm.Config]("agent/request")
	// RequestFailed decides what becomes of a request that failed. The innermost
	// decision is that of the retry policy. Before it answers retry, a listener may
	// change what the request is made of, such as the surface. Not dispatched after a
	// cancellation.
	RequestFailed = cordis.NewWaterfall[RequestError, Recovery]("agent/request-error")
	// TurnStopping asks whether a turn may end. A listener objects by steering; one
	// that bails only keeps the others from being asked.
	TurnStopping = cordis.NewSerial[Stopping, bool]("agent/turn-stopping")
)

// Lifecycle is the coming or going of an agent.
type Lifecycle struct {
	Agent   *Agent `json:"-"`
	Session string `json:"session"` // the id of the agent and of its session
}

// SessionStart tells how an agent's session begins.
type SessionStart struct {
	Agent   *Agent    `json:"-"`
	Session string    `json:"session"`
	Kind    StartKind `json:"kind"`
}

// A StartKind says whether a session is new.
type StartKind string

// The kinds: a session is resumed if it has had a turn.
const (
	Startup StartKind = "startup"
	Resume  StartKind = "resume"
)

// StatusChange is a change of an agent's status.
//
//dsh:name AgentStatusChange
type StatusChange struct {
	Agent *Agent `json:"-"`
	// Session is the session's id.
	Session string `json:"session"`
	// Status is the new status.
	Status Status `json:"status"`
}

// InboxChange tells of messages that came into the inbox or left it.
//
//dsh:name AgentInboxChange
type InboxChange struct {
	Agent *Agent `json:"-"`
	// Session is the session's id.
	Session string `json:"session"`
	// Target is the list that changed.
	Target session.Target `json:"target"`
	// IDs are those of the messages, in their order.
	IDs []string `json:"ids"`
	// Messages are the messages. They must not be changed.
	Messages []message.Message `json:"-"`
}

// Failure is something that went wrong in an agent.
//
//dsh:name AgentFailure
type Failure struct {
	Agent *Agent `json:"-"`
	// Session is the session's id.
	Session string `json:"session"`
	// Turn is the turn in which it happened, 0 for none.
	Turn int `json:"turn,omitempty"`
	// Step is the step in which it happened, 0 for none.
	Step int `json:"step,omitempty"`
	// Message says what went wrong.
	Message string `json:"message"`
	// Code is stable, such as RATE_LIMIT.
	Code string `json:"code,omitempty"`
	Err  error  `json:"-"`
}

// StepPlan is a step that is about to begin.
type StepPlan struct {
	Agent      *Agent
	Session    string
	Turn, Step int
	// Messages are what the step adds: the runtime context if it changed, steering,
	// the prompt. They must not be changed; an Entry may have others.
	Messages []message.Message
}

// An EntryKind says whether a step begins.
type EntryKind string

// The kinds of an Entry.
const (
	Enter  EntryKind = "enter"
	Reject EntryKind = "reject"
)

// Entry is the decision about a step.
type Entry struct {
	Kind EntryKind
	// Messages are what the step adds, of an Enter.
	Messages []message.Message
	// Reason is what people read of a Reject. The claimed messages are lost.
	Reason string
}

// RequestPlan is a request that is about to be made.
type RequestPlan struct {
	Agent      *Agent
	Session    string
	Turn, Step int
	Config     llm.Config // what next returns unless a listener says otherwise
}

// RequestError is a request that failed.
type RequestError struct {
	Agent      *Agent
	Session    string
	Turn, Step int
	Attempt    int // of this step, from 1
	Config     llm.Config
	Failure    message.Failure
}

// A RecoveryKind says what becomes of a failed request.
type RecoveryKind string

// The kinds of a Recovery.
const (
	GiveUp RecoveryKind = "fail"
	Retry  RecoveryKind = "retry"
)

// Recovery is the decision about a failed request.
type Recovery struct {
	Kind RecoveryKind
	// Delay is how long to wait before the request is made again.
	Delay time.Duration
	// Policy names who decided, for the log. A listener that answers retry gives a
	// name of its own; it has at most limits.AgentRecoveries retries in a step.
	Policy string
}

// Stopping is a turn that is about to end.
type Stopping struct {
	Agent   *Agent
	Session string
	Turn    int
	Answer  message.Message // the last one
}
