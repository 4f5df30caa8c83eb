package session

import (
	"encoding/json"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// TurnStart opens a turn. Turns are numbered from 1 without gaps. The loop
// appends it when it takes work up.
type TurnStart struct {
	Turn int `json:"turn"`
}

// EventType returns turn/start.
func (TurnStart) EventType() Type { return TypeTurnStart }

// TurnEnd closes the open turn, when no step is open.
type TurnEnd struct {
	Turn   int       `json:"turn"`
	Reason EndReason `json:"reason"`
}

// EventType returns turn/end.
func (TurnEnd) EventType() Type { return TypeTurnEnd }

// EndReason says why a turn ended.
type EndReason struct {
	Kind   EndKind          `json:"kind"`
	Abort  *AbortReason     `json:"reason,omitempty"` // of aborted
	Error  *message.Failure `json:"error,omitempty"`  // of error
	Detail string           `json:"detail,omitempty"` // for people: which limit, who blocked
}

// An EndKind is the kind of a turn's end.
type EndKind string

// The kinds of ends. EndLimit and EndDenied are ours: a limit of steps, time or
// tokens that the caller set, and a turn that ended because an action was denied.
const (
	EndCompleted   EndKind = "completed"
	EndAborted     EndKind = "aborted"
	EndBlocked     EndKind = "blocked"
	EndError       EndKind = "error"
	EndMaxTokens   EndKind = "max-tokens"
	EndInterrupted EndKind = "interrupted" // the process died; written by the repair
	EndLimit       EndKind = "limit"
	EndDenied      EndKind = "denied"
)

// AbortReason says who aborted: user, parent, hook or disposed.
type AbortReason struct {
	Kind string `json:"kind"`
	Text string `json:"reason,omitempty"`
}

// StepStart opens a step of the open turn: one request and its tool calls. Steps
// are numbered from 1 in each turn.
type StepStart struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// EventType returns step/start.
func (StepStart) EventType() Type { return TypeStepStart }

// StepEnd closes the open step. Every call of its answer has its result by then.
type StepEnd struct {
	Turn int `json:"turn"`
	Step int `json:"step"`
}

// EventType returns step/end.
func (StepEnd) EventType() Type { return TypeStepEnd }

// Chunk is one piece of the model's stream, appended as it comes. Chunks of an
// attempt that failed stay in the log; no message cites them.
type Chunk struct {
	Turn  int           `json:"turn"`
	Step  int           `json:"step"`
	Chunk message.Chunk `json:"chunk"`
}

// EventType returns assistant/chunk.
func (Chunk) EventType() Type { return TypeChunk }

// RequestHeader is everything of a request that is not a message. The loop
// appends it before a request whose header is not the one of the request before,
// whole, never as a difference: HeaderInitial for the first of a log,
// HeaderResume for the first after a resume, HeaderChange otherwise.
type RequestHeader struct {
	Header Header       `json:"header"`
	Reason HeaderReason `json:"reason"`
}

// EventType returns request/header.
func (RequestHeader) EventType() Type { return TypeRequestHeader }

// A Header is the part of a request beside its messages.
type Header struct {
	// Config is an object with at least provider and model, texts.
	Config lossless.Value `json:"config"`
	// AdapterDefaults marks with true what of Config came from the adapter.
	AdapterDefaults lossless.Value `json:"adapterDefaults,omitzero"`
	System          message.Text   `json:"system,omitempty"`
	Tools           []message.Tool `json:"tools,omitempty"`
}

// Equal reports whether two headers are the same in config, system and the
// ordered tools, by the text of their JSON.
func (h Header) Equal(other Header) bool {
	a, errA := marshalPlain(h.canonical())
	b, errB := marshalPlain(other.canonical())
	return errA == nil && errB == nil && string(a) == string(b)
}

// canonical leaves out defaults of which none is true.
func (h Header) canonical() Header {
	for _, v := range h.AdapterDefaults.Members() {
		if v.Bool() {
			return h
		}
	}
	h.AdapterDefaults = lossless.Value{}
	return h
}

// MarshalJSON writes the canonical form.
func (h Header) MarshalJSON() ([]byte, error) {
	type fields Header
	return marshalPlain(fields(h.canonical()))
}

var _ json.Marshaler = Header{}

// A HeaderReason says why a header was logged.
type HeaderReason string

// The reasons.
const (
	HeaderInitial HeaderReason = "initial"
	HeaderResume  HeaderReason = "resume"
	HeaderChange  HeaderReason = "change"
)

// RequestContext tells where requests go from now on, for displays. The loop
// appends it when it changed.
type RequestContext struct {
	Provider      string `json:"provider"`
	Model         string `json:"model"`
	ContextWindow int64  `json:"contextWindow,omitempty"` // tokens
}

// EventType returns request/context.
func (RequestContext) EventType() Type { return TypeRequestContext }

// EndSeed marks that what follows was written by a later life of the session: a
// resume, or the first start of a fork. Only this package appends it.
type EndSeed struct{}

// EventType returns session/end-seed.
func (EndSeed) EventType() Type { return TypeEndSeed }

// Title names the session; the last one counts. The person renames with Source
// user, a plugin or a model proposes with another.
type Title struct {
	Title  string `json:"title"` // at most limits.SessionTitle characters, one line
	Source string `json:"source,omitempty"`
}

// EventType returns session/title.
func (Title) EventType() Type { return TypeTitle }

// A Target names one of the two lists of the inbox.
//
//dsh:name InboxTarget
type Target string

// The lists: a prompt waits for the next turn, steering for the next step.
const (
	NextTurn Target = "next-turn"
	NextStep Target = "next-step"
)

// InboxSplice changes one list of the inbox: RemovedCount messages go from
// Start on, Inserted come in their place. The agent appends it before it changes
// its own list. Ids of waiting messages are unique.
type InboxSplice struct {
	Target       Target            `json:"target"`
	Start        int               `json:"start"`
	RemovedCount int               `json:"removedCount,omitempty"`
	Inserted     []message.Message `json:"inserted"`
	Outcome      string            `json:"outcome,omitempty"` // canceled
}

// EventType returns agent/inbox/spliced.
func (InboxSplice) EventType() Type { return TypeInbox }

// Preset tells that the session runs another agent preset from now on.
type Preset struct {
	AgentPreset string `json:"agentPreset"`
}

// EventType returns agent-preset/selected.
func (Preset) EventType() Type { return TypePreset }

// Todo is the whole list of things to do, as the model last wrote it.
type Todo struct {
	Todos []TodoItem `json:"todos"`
}

// TodoItem is one entry of the list.
type TodoItem struct {
	Content string `json:"content"`
	Status  string `json:"status"` // pending, in_progress, completed
}

// EventType returns todo/write.
func (Todo) EventType() Type { return TypeTodo }

// Retry tells, before the wait, that a failed request will be made again in the
// same step. Attempt counts from 1 for each step.
type Retry struct {
	Turn     int             `json:"turn"`
	Step     int             `json:"step"`
	Provider string          `json:"provider"`
	Policy   string          `json:"policy,omitempty"`
	Attempt  int             `json:"attempt"`
	DelayMs  int64           `json:"delayMs"`
	Failure  message.Failure `json:"failure"`
}

// EventType returns llm/retry.
func (Retry) EventType() Type { return TypeRetry }

// RetryStarted tells that the wait of a Retry is over.
type RetryStarted struct {
	Turn    int `json:"turn"`
	Step    int `json:"step"`
	Attempt int `json:"attempt"`
}

// EventType returns llm/retry-started.
func (RetryStarted) EventType() Type { return TypeRetryStarted }

// LLMCall is a request outside of the conversation with its whole answer: one
// that a plugin made, a title, a summary. It is not on the surface.
type LLMCall struct {
	Purpose string           `json:"purpose"`         // such as compact, title, plugin
	Owner   string           `json:"owner,omitempty"` // the plugin
	Request lossless.Value   `json:"request"`         // header and messages, whole
	Answer  *message.Message `json:"answer,omitempty"`
	Failure *message.Failure `json:"failure,omitempty"`
	Usage   *message.Usage   `json:"usage,omitempty"`
}

// EventType returns llm/call.
func (LLMCall) EventType() Type { return TypeLLMCall }

// PermissionMode tells the mode that binds the session from now on.
type PermissionMode struct {
	Mode   string `json:"mode"` // ask, auto-edit, full, read-only
	Source string `json:"source,omitempty"`
}

// EventType returns permission/mode.
func (PermissionMode) EventType() Type { return TypePermissionMode }

// ApprovalAsked tells that the person is asked whether an action may happen.
type ApprovalAsked struct {
	ID      string         `json:"id"`
	CallID  string         `json:"callId,omitempty"`
	Tool    string         `json:"tool,omitempty"`
	Mount   string         `json:"mount,omitempty"` // of a mounted plugin that acts
	Summary string         `json:"summary"`
	Detail  lossless.Value `json:"detail,omitzero"`
}

// EventType returns approval/asked.
func (ApprovalAsked) EventType() Type { return TypeApprovalAsked }

// ApprovalDecided is the answer to an ApprovalAsked.
type ApprovalDecided struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`         // allow, deny
	Scope    string `json:"scope,omitempty"`  // once, session
	Source   string `json:"source,omitempty"` // user, policy, headless; cancelled: the turn was, before an answer came
	Reason   string `json:"reason,omitempty"`
}

// EventType returns approval/decided.
func (ApprovalDecided) EventType() Type { return TypeApprovalDecided }

// ApprovalRule remembers a decision for the session. That of a mounted tool is
// bound to the hash of its source.
type ApprovalRule struct {
	Rule       string `json:"rule"`
	Decision   string `json:"decision"`
	SourceHash string `json:"sourceHash,omitempty"`
}

// EventType returns approval/rule.
func (ApprovalRule) EventType() Type { return TypeApprovalRule }

// CompactStart tells that older messages are about to be replaced on the surface;
// the replacing messages follow, then CompactEnd with the same id.
type CompactStart struct {
	ID     string `json:"id"`
	Reason string `json:"reason"` // full, asked, prune
}

// EventType returns compact/start.
func (CompactStart) EventType() Type { return TypeCompactStart }

// CompactEnd tells what came of a compaction.
type CompactEnd struct {
	ID       string           `json:"id"`
	Outcome  string           `json:"outcome"` // done, failed, canceled
	Replaced int              `json:"replaced,omitempty"`
	Failure  *message.Failure `json:"failure,omitempty"`
}

// EventType returns compact/end.
func (CompactEnd) EventType() Type { return TypeCompactEnd }
