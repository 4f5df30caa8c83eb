package tool

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// A Token identifies one running call within the process; 0 is no call.
type Token uint64

var lastToken atomic.Uint64

// LastToken is the newest token that was given out: a call with a greater one
// begins later.
func LastToken() Token { return Token(lastToken.Load()) }

// A Call asks the registry to run a tool.
type Call struct {
	// CallID is the caller's id; empty means that the registry makes one.
	CallID string
	Name   string
	// Arguments is the JSON text of an object; empty means {}.
	Arguments lossless.Text
	// Scope is where the tool is looked up; nil is the global layer.
	Scope *Scope
	// Parent is the call whose body makes this one, or nil.
	Parent *Exec
	// Timeout bounds the body beside the tool's own limit; the smaller counts. 0 means none.
	Timeout time.Duration
	// OnProgress hears the progress of this call on the goroutine that reports
	// it. It must return soon and may be called until Execute returns, never
	// by two goroutines at once.
	OnProgress func(Progress)
}

// Progress is live output of a running call. It is never part of a result, a
// log or a request, and may be dropped.
type Progress struct {
	// Text is at most limits.Progress characters.
	Text string `json:"text,omitempty"`
	// Done and Total count whatever the tool counts; finite, or nil.
	Done  *float64 `json:"done,omitempty"`
	Total *float64 `json:"total,omitempty"`
}

// Exec is one running call as its body, listeners and guards see it. The
// fields must not be changed. Cancellation is the context beside it.
//
//dsh:ts ToolCall
type Exec struct {
	Token      Token
	CallID     string
	RootCallID string // CallID of the outermost call around this one
	Name       string
	// Arguments are valid under the tool's parameters, with defaults filled
	// in. Calls that were refused before that show what the caller sent, and
	// null where it is not lossless JSON or too large.
	Arguments lossless.Text
	Scope     *Scope
	// Parent is the token of the call whose body makes this one; 0 for none.
	Parent Token
	// Tool is the tool that was found; nil when the name is unknown.
	Tool *View

	registry   *Registry
	found      *entry      // what the call is expected at; nil: nothing
	arrived    atomic.Bool // there, or elsewhere
	onProgress func(Progress)
	depth      int                   // of Parent calls around it
	reach      cordis.DispatchOption // selects the listeners of tools/pre-execute it meets
	answer     cordis.DispatchOption // those of tools/execute and tools/post-execute

	mu           sync.Mutex
	ctx          context.Context // of Execute, then of the body: the chain that reports progress
	over         bool
	reporting    bool
	tokens       float64 // of the progress rate
	lastReport   time.Time
	dropped      int
	contexts     []Message
	concludeTurn bool
}

// ExecView is a call as listeners of plugins see it.
//
//dsh:name ToolCall
type ExecView struct {
	// Token identifies the call while this process runs.
	Token Token `json:"token"`
	// CallID is the caller's id of the call.
	CallID string `json:"callId"`
	// RootCallID is the callId of the outermost call around this one.
	RootCallID string `json:"rootCallId"`
	// Name is the tool's name.
	Name string `json:"name"`
	// Arguments are valid under the tool's parameters, with defaults filled in;
	// of a refused call they are what the caller sent.
	Arguments any `json:"arguments"`
	// Parent is the token of the call within which this one was made.
	Parent Token `json:"parent,omitempty"`
}

// The bounds of what one call may report. Progress beyond the rate is dropped.
const (
	progressPerSecond = 100
	progressBurst     = 200
	maxContexts       = 64
)

// Progress reports live output. It never blocks on the reader of another
// report: what comes too fast, at once from two goroutines, or after the end
// of the call is dropped.
func (e *Exec) Progress(p Progress) {
	ctx, ok := e.startReport()
	if !ok {
		return
	}
	defer e.endReport()
	p.Text = plain.Cut(p.Text, limits.Progress)
	p.Done, p.Total = finite(p.Done), finite(p.Total)
	if e.onProgress != nil {
		e.registry.contain("progress callback", func() { e.onProgress(p) })
	}
	Progressed.Emit(ctx, e.registry.ctx, ProgressReport{Exec: e, Progress: p})
}

func finite(f *float64) *float64 {
	if f == nil || math.IsNaN(*f) || math.IsInf(*f, 0) {
		return nil
	}
	return f
}

// began notes the context that the body got.
func (e *Exec) began(ctx context.Context) {
	e.mu.Lock()
	e.ctx = ctx
	e.mu.Unlock()
}

// startReport admits a report and returns the chain that it belongs to.
func (e *Exec) startReport() (context.Context, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return nil, false
	}
	now := time.Now()
	if e.lastReport.IsZero() {
		e.tokens = progressBurst
	} else {
		e.tokens = min(progressBurst, e.tokens+now.Sub(e.lastReport).Seconds()*progressPerSecond)
	}
	e.lastReport = now
	if e.reporting || e.tokens < 1 {
		e.dropped++
		return nil, false
	}
	e.tokens--
	e.reporting = true
	return e.ctx, true
}

func (e *Exec) endReport() {
	e.mu.Lock()
	e.reporting = false
	e.mu.Unlock()
}

// Dropped returns how many progress reports of this call were dropped.
func (e *Exec) Dropped() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// DeferContext adds a message that follows the result in the conversation. It
// reports false, and adds nothing, after the body ended, beyond 64 messages,
// or when the content is not valid.
func (e *Exec) DeferContext(m Message) bool {
	if checkBlocks(m.Content) != nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over || len(e.contexts) >= maxContexts {
		return false
	}
	e.contexts = append(e.contexts, m)
	return true
}

// ConcludeTurn asks the loop to end the turn after this call, if it succeeds.
// After the body ended it does nothing.
func (e *Exec) ConcludeTurn() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over {
		e.concludeTurn = true
	}
}

// end closes the call for its body's reports.
func (e *Exec) end() (contexts []Message, concludeTurn bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	return e.contexts, e.concludeTurn
}

// MarshalJSON returns what a plugin sees of a call: token, callId, rootCallId,
// name, arguments and, in a nested call, parent.
func (e *Exec) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 128+len(e.Arguments))
	out = append(out, `{"token":`...)
	out = strconv.AppendUint(out, uint64(e.Token), 10)
	out = append(out, `,"callId":`...)
	out = lossless.Str(e.CallID).AppendTo(out)
	out = append(out, `,"rootCallId":`...)
	out = lossless.Str(e.RootCallID).AppendTo(out)
	out = append(out, `,"name":`...)
	out = lossless.Str(e.Name).AppendTo(out)
	out = append(out, `,"arguments":`...)
	out = append(out, e.Arguments...)
	if e.Parent != 0 {
		out = append(out, `,"parent":`...)
		out = strconv.AppendUint(out, uint64(e.Parent), 10)
	}
	return append(out, '}'), nil
}

var _ json.Marshaler = (*Exec)(nil)
