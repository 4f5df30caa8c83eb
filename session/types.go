package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// A Type names what an event tells, such as turn/start.
type Type string

// The types that this package knows. A log carries any other type as it came.
const (
	TypeTurnStart       Type = "turn/start"
	TypeTurnEnd         Type = "turn/end"
	TypeStepStart       Type = "step/start"
	TypeStepEnd         Type = "step/end"
	TypeUser            Type = "user/message"
	TypeChunk           Type = "assistant/chunk"
	TypeAssistant       Type = "assistant/message"
	TypeCall            Type = "tool/call"
	TypeResult          Type = "tool/result"
	TypeRequestHeader   Type = "request/header"
	TypeRequestContext  Type = "request/context"
	TypeEndSeed         Type = "session/end-seed"
	TypeTitle           Type = "session/title"
	TypeInbox           Type = "agent/inbox/spliced"
	TypePreset          Type = "agent-preset/selected"
	TypeTodo            Type = "todo/write"
	TypeRetry           Type = "llm/retry"
	TypeRetryStarted    Type = "llm/retry-started"
	TypeLLMCall         Type = "llm/call"
	TypePermissionMode  Type = "permission/mode"
	TypeApprovalAsked   Type = "approval/asked"
	TypeApprovalDecided Type = "approval/decided"
	TypeApprovalRule    Type = "approval/rule"
	TypeCompactStart    Type = "compact/start"
	TypeCompactEnd      Type = "compact/end"
)

// refused are types that early writers used and no reader takes.
var refused = map[Type]string{
	"request/header-delta": "header deltas are not supported; log a whole request/header",
}

// A Payload is what an event tells: one of the structs of this package, or a
// [Raw] for types that it does not know. The doc comment of each says who
// appends it and when.
type Payload interface {
	// EventType is the type of the event that carries the payload.
	EventType() Type
}

// A surfacer is a payload whose event changes what the model sees.
type surfacer interface {
	surface() (Op, []int64)
}

// Raw is a payload of a type that this package does not know.
type Raw struct {
	Type Type           // such as plugin-name/thing
	Data lossless.Value // an object
}

// EventType returns the type.
func (r Raw) EventType() Type { return r.Type }

// validType is the rule for the names of types.
func validType(name string) bool {
	return name != "" && len(name) <= 100 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/-_.") == ""
}

// encode returns the JSON text of a payload.
func encode(p Payload) ([]byte, error) {
	if raw, ok := p.(Raw); ok {
		if !validType(string(raw.Type)) {
			return nil, fmt.Errorf("a type is a text of letters, digits and / - _ . such as todo/write; this one is %q", plain.Name(string(raw.Type)))
		}
		if _, known := payloads[raw.Type]; known {
			return nil, fmt.Errorf("%s has a payload of its own in package session; append that one", raw.Type)
		}
		return raw.Data.Encode(), nil
	}
	if p == nil {
		return nil, errors.New("there is no payload")
	}
	if _, known := payloads[p.EventType()]; !known {
		return nil, fmt.Errorf("%T is no payload of package session; append a session.Raw", p)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(p); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte{'\n'}), nil
}

// Payload decodes the event's data: a value (not a pointer) of the struct for its
// type, or a Raw. Members that this package does not know are left out of the
// struct; they are in Data.
func (e Event) Payload() (Payload, error) {
	decode, ok := payloads[e.Type]
	if !ok {
		v, err := lossless.Parse([]byte(e.Data()))
		return Raw{e.Type, v}, err
	}
	p, err := decode(e)
	if err != nil {
		return nil, fmt.Errorf("decode event %d (%s): %w", e.Seq, e.Type, err)
	}
	return p, nil
}

// decoder reads payloads of one type.
func decoder[T Payload](e Event) (Payload, error) {
	var p T
	err := unmarshal(e.Data(), &p)
	return p, err
}

func unmarshal(data string, into any) error {
	if !utf8.ValidString(data) {
		return errors.New("the text is not valid UTF-8")
	}
	return json.Unmarshal([]byte(data), into)
}

var payloads = map[Type]func(Event) (Payload, error){
	TypeTurnStart:       decoder[TurnStart],
	TypeTurnEnd:         decoder[TurnEnd],
	TypeStepStart:       decoder[StepStart],
	TypeStepEnd:         decoder[StepEnd],
	TypeChunk:           decoder[Chunk],
	TypeCall:            decoder[Call],
	TypeRequestHeader:   decoder[RequestHeader],
	TypeRequestContext:  decoder[RequestContext],
	TypeEndSeed:         decoder[EndSeed],
	TypeTitle:           decoder[Title],
	TypeInbox:           decoder[InboxSplice],
	TypePreset:          decoder[Preset],
	TypeTodo:            decoder[Todo],
	TypeRetry:           decoder[Retry],
	TypeRetryStarted:    decoder[RetryStarted],
	TypeLLMCall:         decoder[LLMCall],
	TypePermissionMode:  decoder[PermissionMode],
	TypeApprovalAsked:   decoder[ApprovalAsked],
	TypeApprovalDecided: decoder[ApprovalDecided],
	TypeApprovalRule:    decoder[ApprovalRule],
	TypeCompactStart:    decoder[CompactStart],
	TypeCompactEnd:      decoder[CompactEnd],

	TypeUser: func(e Event) (Payload, error) {
		p := UserMessage{Op: e.op, Sources: e.Sources()}
		err := unmarshal(e.Data(), &p.Message)
		return p, err
	},
	TypeAssistant: func(e Event) (Payload, error) {
		p := AssistantMessage{Op: e.op, Sources: e.Sources()}
		err := unmarshal(e.Data(), &p)
		return p, err
	},
	TypeResult: func(e Event) (Payload, error) {
		p := Result{Op: e.op, Sources: e.Sources()}
		err := unmarshal(e.Data(), &p)
		return p, err
	},
}

// surfaceTypes carry an Op.
func onSurface(t Type) bool { return t == TypeUser || t == TypeAssistant || t == TypeResult }

// UserMessage is a message of the role user that is not a tool's result: what the
// person said, a context that a plugin adds, a summary that replaces older
// messages. The loop appends it after step/start and before the request;
// compaction appends it with Op Replace between steps, or in a step whose request
// was too large.
type UserMessage struct {
	Message message.Message
	Op      Op      // the zero value is Append
	Sources []int64 // of a Replace: the nodes that it shadows; see [Op]
}

// EventType returns user/message.
func (UserMessage) EventType() Type { return TypeUser }

// MarshalJSON writes the message: it is the whole payload.
func (u UserMessage) MarshalJSON() ([]byte, error) { return marshalPlain(u.Message) }

func (u UserMessage) surface() (Op, []int64) { return u.Op, u.Sources }

func marshalPlain(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return out.Bytes(), err
}

// AssistantMessage is what the model answered in a step, assembled; at most one
// for each step. The loop appends it when the stream has finished well. Every
// tool-call block in it is then owed one [Result] before the step may end.
// A message with empty content is logged, and the model does not see it.
type AssistantMessage struct {
	Turn    int             `json:"turn"`
	Step    int             `json:"step"`
	Message message.Message `json:"message"`
	Usage   *message.Usage  `json:"usage,omitempty"`
	Op      Op              `json:"-"` // the zero value is Append
	Sources []int64         `json:"-"` // the chunks that it was assembled of
}

// EventType returns assistant/message.
func (AssistantMessage) EventType() Type { return TypeAssistant }

func (a AssistantMessage) surface() (Op, []int64) { return a.Op, a.Sources }

// Call tells that a call of the step's answer is about to be dispatched. The loop
// appends it, in the order of the blocks, and makes a checkpoint before the body
// of the tool runs.
type Call struct {
	Turn   int    `json:"turn"`
	Step   int    `json:"step"`
	CallID string `json:"callId"`
	Name   string `json:"name"`
	// Arguments is the raw text that the model wrote, byte for byte.
	Arguments message.Text `json:"arguments"`
}

// EventType returns tool/call.
func (Call) EventType() Type { return TypeCall }

// Result answers one call of the step's answer, in the order of the blocks. Its
// [Call] was appended before, unless the error's code is [CodeNotStarted].
// With Op Replace it prunes one earlier result: only the content may differ.
type Result struct {
	Turn    int             `json:"turn"`
	Step    int             `json:"step"`
	Message message.Message `json:"message"` // see message.Result
	Error   *ResultError    `json:"error,omitempty"`
	Meta    lossless.Value  `json:"meta,omitzero"` // for people: cards; the model does not see it
	Op      Op              `json:"-"`             // the zero value is Append
	Sources []int64         `json:"-"`
}

// ResultError is the class of a tool's failure; its text is in the message.
type ResultError struct {
	Name string `json:"name"`
	Code string `json:"code,omitempty"`
}

// EventType returns tool/result.
func (Result) EventType() Type { return TypeResult }

func (r Result) surface() (Op, []int64) { return r.Op, r.Sources }
