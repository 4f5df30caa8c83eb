package anthropic

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/sse"
	"github.com/dsh-go/dsh/lossless"
)

// event is one event of a stream, or a whole message.
type event struct {
	Type         string          `json:"type"`
	Index        int             `json:"index"`
	Message      *started        `json:"message"`
	ContentBlock *block          `json:"content_block"`
	Delta        *delta          `json:"delta"`
	Usage        *usage          `json:"usage"`
	Error        json.RawMessage `json:"error"`
	Content      []block         `json:"content"` // of a whole message
	StopReason   *string         `json:"stop_reason"`
}

// started is the message of a message_start; its content comes later.
type started struct {
	Usage *usage `json:"usage"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
}

type delta struct {
	Type        string  `json:"type"`
	Text        string  `json:"text"`
	Thinking    string  `json:"thinking"`
	Signature   string  `json:"signature"`
	PartialJSON string  `json:"partial_json"`
	StopReason  *string `json:"stop_reason"`
}

type usage struct {
	Input  *int64 `json:"input_tokens"`
	Output *int64 `json:"output_tokens"`
	Read   *int64 `json:"cache_read_input_tokens"`
	Write  *int64 `json:"cache_creation_input_tokens"`
}

// open is a block of the message under way.
type open struct {
	block int
	input string // what the start said, used when no delta says more
	wrote bool
}

// decoder turns events into chunks of ours.
type decoder struct {
	out     *llm.Emitter
	open    map[int]*open // by the server's index; nil for what is left out
	usage   llm.Usage
	stop    string
	failure *llm.Failure
}

func newDecoder(out *llm.Emitter) *decoder { return &decoder{out: out, open: map[int]*open{}} }

// event takes one event and reports whether it wants more.
func (d *decoder) event(ev sse.Event) bool {
	if string(ev.Data) == "[DONE]" {
		return false
	}
	var e event
	if err := json.Unmarshal(ev.Data, &e); err != nil {
		if !ev.Last || ev.Whole { // else the connection ended inside an event, and end says so
			d.failure = llm.Fail(llm.CodeMalformed, "an event of the answer is not what the Messages API sends: %.200q", ev.Data)
			d.failure.RequestID = ev.RequestID
		}
		return false
	}
	if e.Type == "error" || ev.Type == "error" || (e.Type == "" && len(e.Error) > 0) {
		f, ok := sse.InStream(ev.Data)
		if !ok {
			f = llm.Fail(llm.CodeServer, "the server reports an error without saying which")
		}
		f.RequestID = ev.RequestID
		d.failure = f
		return false
	}
	if ev.Whole {
		d.message(&e, ev)
		return false
	}
	switch e.Type {
	case "message_start":
		if len(d.open) > 0 {
			d.flush()
			d.out.Reset()
			clear(d.open)
		}
		if e.Message != nil {
			d.count(e.Message.Usage)
		}
	case "content_block_start":
		if e.ContentBlock != nil {
			d.start(e.Index, e.ContentBlock)
		}
	case "content_block_delta":
		if e.Delta != nil {
			d.delta(e.Index, e.Delta)
		}
	case "message_delta":
		if e.Delta != nil && e.Delta.StopReason != nil && d.stop == "" {
			d.stop = *e.Delta.StopReason
		}
		d.count(e.Usage)
	case "message_stop":
		return false
	}
	return !d.out.Done()
}

// message takes an answer that is no stream.
func (d *decoder) message(e *event, ev sse.Event) {
	if e.StopReason == nil {
		d.failure = llm.Fail(llm.CodeMalformed, "the answer is not a message: %.200q", ev.Data)
		d.failure.RequestID = ev.RequestID
		return
	}
	for i := range e.Content {
		d.start(i, &e.Content[i])
	}
	d.stop = *e.StopReason
	d.count(e.Usage)
}

func (d *decoder) start(index int, b *block) {
	if d.out.Done() {
		return
	}
	switch b.Type {
	case "text":
		d.open[index] = &open{block: d.out.Open(llm.TextBlock)}
	case "thinking", "redacted_thinking":
		d.open[index] = &open{block: d.out.Open(llm.ReasoningBlock)}
	case "tool_use":
		o := &open{block: d.out.Open(llm.CallBlock)}
		if input := strings.TrimSpace(string(b.Input)); input != "" && input != "{}" && input != "null" {
			o.input = input
		}
		d.open[index] = o
	default: // a tool of the server; what it says is for the server
		d.open[index] = nil
		return
	}
	o := d.open[index]
	if d.out.Done() {
		return
	}
	switch b.Type {
	case "text":
		d.out.Append(o.block, b.Text)
	case "tool_use":
		d.out.Call(o.block, b.ID, b.Name, "")
	default:
		d.out.Append(o.block, b.Thinking)
		d.out.Sign(o.block, b.Signature, b.Data)
	}
}

func (d *decoder) delta(index int, m *delta) {
	o := d.open[index]
	if o == nil || d.out.Done() {
		return
	}
	switch m.Type {
	case "text_delta":
		if d.out.Is(o.block, llm.TextBlock) {
			d.out.Append(o.block, m.Text)
		}
	case "thinking_delta":
		if d.out.Is(o.block, llm.ReasoningBlock) {
			d.out.Append(o.block, m.Thinking)
		}
	case "signature_delta":
		if d.out.Is(o.block, llm.ReasoningBlock) {
			d.out.Sign(o.block, m.Signature, "")
		}
	case "input_json_delta":
		if d.out.Is(o.block, llm.CallBlock) && m.PartialJSON != "" {
			o.wrote = true
			d.out.Call(o.block, "", "", m.PartialJSON)
		}
	}
}

// flush gives calls whose arguments came with their start what they said.
func (d *decoder) flush() {
	for _, i := range slices.Sorted(maps.Keys(d.open)) {
		if o := d.open[i]; o != nil && o.input != "" && !o.wrote {
			o.wrote = true
			d.out.Call(o.block, "", "", o.input)
		}
	}
}

// count merges a usage: what a later event says replaces what an earlier one did.
func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	for _, f := range []struct {
		from *int64
		to   *int64
	}{{u.Input, &d.usage.Input}, {u.Output, &d.usage.Output}, {u.Read, &d.usage.CacheRead}, {u.Write, &d.usage.CacheWrite}} {
		if f.from != nil {
			*f.to = max(0, *f.from)
		}
	}
	d.out.Usage(d.usage)
}

// end finishes the stream after the last event, or after f ended it.
func (d *decoder) end(f *llm.Failure) {
	switch {
	case d.failure != nil:
		d.out.Fail(d.failure)
		return
	case f != nil && (d.stop == "" || f.Code == llm.CodeAborted):
		d.out.Fail(f)
		return
	}
	d.flush()
	switch d.stop {
	case "":
		d.out.Fail(llm.Fail(llm.CodeStreamClosed, "the connection ended before the answer did"))
	case "end_turn", "tool_use", "stop_sequence":
		d.out.Finish(llm.Stop, lossless.Value{})
	case "max_tokens":
		d.out.Finish(llm.MaxTokens, lossless.Value{})
	case "model_context_window_exceeded":
		d.out.Fail(llm.Fail(llm.CodeContextWindow, "the answer filled the context window"))
	case "refusal":
		d.out.Fail(llm.Fail(llm.CodeRefusal, "the model refused to go on"))
	default:
		d.out.Fail(llm.Fail(plain.Line(strings.ToUpper(d.stop), limits.Name), "the model stopped with %q", plain.Line(d.stop, limits.Name)))
	}
}
