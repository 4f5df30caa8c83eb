package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// The codes of ErrorInfo that this package gives.
const (
	// CodeInvalidArgs: the arguments are not lossless JSON, too large, or not
	// valid under the tool's parameters.
	CodeInvalidArgs = "INVALID_ARGS"
	// CodeUnknownTool: no tool of that name is visible, or it has gone.
	CodeUnknownTool = "UNKNOWN_TOOL"
	// CodeUnavailable: the tool's owner is going away and takes no new calls.
	CodeUnavailable = "TOOL_UNAVAILABLE"
	// CodeDenied: a listener, a guard, the policy or a person refused the call.
	CodeDenied = "DENIED"
	// CodeBlocked: a post-execute listener withheld the result.
	CodeBlocked = "BLOCKED"
	// CodeInvalidOutput: the value is not valid under the output schema.
	CodeInvalidOutput = "INVALID_TOOL_OUTPUT"
	// CodeTimeout: the time limit passed.
	CodeTimeout = "TOOL_TIMEOUT"
	// CodeAbortedBeforeDispatch: the call was cancelled before its body started.
	CodeAbortedBeforeDispatch = "ABORTED_BEFORE_DISPATCH"
	// CodeNesting: calls within calls are nested too deep.
	CodeNesting = "CALLS_NESTED"
	// CodeAborted: the call was cancelled while its body ran.
	CodeAborted = "ABORTED"
)

// Error is an error with a name and a code for the result. Bodies, listeners
// and projections may return one, wrapped or not.
type Error struct {
	Name    string // the kind of error: ToolArgsError
	Code    string // for programs: INVALID_ARGS
	Message string
	Err     error // the cause, or nil
}

var _ error = (*Error)(nil)

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// DuplicateError says that a name is taken, and by whom.
type DuplicateError struct {
	Name  string
	Scope *Scope // where the other tool is registered
	Owner string // for people: temporary Plugin dyn-1 (holder)
	Mount *Mount // the temporary plugin that owns it; nil for the composition
}

var _ error = (*DuplicateError)(nil)

// Error names the owner and, where only that helps, the way out.
func (e *DuplicateError) Error() string {
	in := ""
	if e.Scope != nil {
		in = " in this scope"
	}
	text := fmt.Sprintf("tool %q is already registered%s by %s", e.Name, in, e.Owner)
	if e.Mount == nil {
		text += ": choose another name"
	}
	return text
}

// A Block is one piece of content; text blocks are what every reader shows.
//
//dsh:name ContentBlock
//dsh:ts { type: 'text'; text: string } | { type: string; [member: string]: any }
type Block struct {
	Type string
	Text string // of a text block
	// Raw is the JSON of blocks of other types, and of text blocks with further
	// members. It passes byte for byte.
	Raw lossless.Text
}

// TextBlock returns a text block.
func TextBlock(text string) Block { return Block{Type: "text", Text: text} }

// MarshalJSON returns Raw, or the plain text block.
func (b Block) MarshalJSON() ([]byte, error) {
	if b.Raw != nil {
		return b.Raw, nil
	}
	return lossless.Obj(
		lossless.M("type", lossless.Str(b.Type)),
		lossless.M("text", lossless.Str(b.Text)),
	).Encode(), nil
}

// UnmarshalJSON reads a block: an object with a string type.
func (b *Block) UnmarshalJSON(text []byte) error {
	v, err := lossless.Parse(text)
	if err != nil {
		return fmt.Errorf("read content block: %w", err)
	}
	tag, _ := v.Get("type")
	if tag.Kind() != lossless.String {
		return errors.New("read content block: a block is an object with a string type, such as { type: 'text', text: '…' }")
	}
	body, _ := v.Get("text")
	*b = Block{Type: tag.Str(), Text: body.Str()}
	if b.Type != "text" || body.Kind() != lossless.String || v.Len() != 2 {
		b.Raw = v.Encode()
	}
	return nil
}

// check says what is wrong with a block that a projection returned.
func (b Block) check() error {
	if b.Raw == nil {
		if b.Type == "" {
			return errors.New("a block without a type")
		}
		return nil
	}
	v, err := lossless.Parse(b.Raw)
	if err != nil {
		return err
	}
	if tag, _ := v.Get("type"); tag.Kind() != lossless.String || tag.Str() != b.Type {
		return fmt.Errorf("a block whose JSON does not have its type %q", b.Type)
	}
	return nil
}

// checkBlocks checks content as a whole, its size included.
func checkBlocks(blocks []Block) error {
	size := 0
	for i, b := range blocks {
		if err := b.check(); err != nil {
			return fmt.Errorf("content block %d: %w", i, err)
		}
		size += len(b.Text) + len(b.Raw)
	}
	if size > limits.Result {
		return fmt.Errorf("%d bytes of content, more than the limit of %d", size, limits.Result)
	}
	return nil
}

// A Message is context for the model that follows a result.
//
//dsh:name ContextMessage
type Message struct {
	// Content is what the model reads.
	Content []Block `json:"content"`
}

// ErrorInfo says why a call failed.
//
//dsh:name ToolErrorInfo
type ErrorInfo struct {
	// Message is the text, at most limits.ErrorText characters.
	Message string `json:"message"`
	// Name is the kind of error, where the harness or an Error gives one.
	Name string `json:"name,omitempty"`
	// Code is for programs, where the harness or an Error gives one: DENIED.
	Code string `json:"code,omitempty"`
}

// A Result is what became of a call. It is complete and must not be changed.
//
//dsh:name ToolResult
type Result struct {
	// IsError says that the call failed; Error says why, and Content holds one
	// text block "Error: <message>" unless a listener or FinalizeContent
	// replaced it.
	IsError bool `json:"isError"`
	// Value is the canonical value of a success.
	Value lossless.Text `json:"value,omitempty"`
	// Content is what the model reads.
	Content []Block `json:"content"`
	// Meta is what people's views read; it never reaches the model.
	Meta lossless.Text `json:"meta,omitempty"`
	// Error is set exactly when IsError is.
	Error *ErrorInfo `json:"error,omitempty"`
	// Contexts follow the result in the conversation: those the tool deferred,
	// those a wrapper added, those of the post-execute decision.
	Contexts []Message `json:"contexts,omitempty"`
	// ConcludeTurn asks the loop to end the turn; only a success can.
	ConcludeTurn bool `json:"concludeTurn,omitempty"`
}

// errorResult makes a Go error a result.
func errorResult(err error) *Result {
	info := &ErrorInfo{Message: plain.Cut(errorText(err), limits.ErrorText)}
	if typed, ok := errors.AsType[*Error](err); ok {
		info.Name, info.Code = typed.Name, typed.Code
	}
	return &Result{IsError: true, Error: info, Content: []Block{TextBlock("Error: " + info.Message)}}
}

// errorText is err.Error for errors that other people wrote.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "<unprintable error>"
		}
	}()
	if text = err.Error(); text == "" {
		text = "an error without a message"
	}
	return text
}

// panicError is a panic in a plugin's function.
type panicError struct{ value any }

func (e *panicError) Error() string {
	if err, ok := e.value.(error); ok {
		return "panic: " + errorText(err)
	}
	return fmt.Sprintf("panic: %v", e.value)
}

// quote quotes text for a message, cut to the length of a preview.
func quote(s string) string {
	if len(s) <= limits.Preview { // bytes bound the characters
		return strconv.Quote(s)
	}
	return strconv.Quote(plain.Line(s, limits.Preview))
}

var (
	_ json.Marshaler   = Block{}
	_ json.Unmarshaler = (*Block)(nil)
)
