package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/sse"
)

// chunk is one event of a stream, or with Message in the choice a whole answer.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	XGroq   *struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
	Data *chunk `json:"data"` // a gateway's wrapping
}

type choice struct {
	Index        int     `json:"index"`
	Delta        *delta  `json:"delta"`
	Message      *delta  `json:"message"`
	FinishReason *string `json:"finish_reason"`
	Usage        *usage  `json:"usage"`
}

type delta struct {
	Content          json.RawMessage   `json:"content"`
	ReasoningContent *string           `json:"reasoning_content"`
	Reasoning        json.RawMessage   `json:"reasoning"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	Refusal          *string           `json:"refusal"`
	ToolCalls        []toolDelta       `json:"tool_calls"`
}

type toolDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		ID        string          `json:"id"` // where old llama.cpp puts it
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Hit        int64 `json:"prompt_cache_hit_tokens"`
	Details    *struct {
		Cached  int64 `json:"cached_tokens"`
		Written int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Out *struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// decoder turns events into chunks of ours.
type decoder struct {
	out       *llm.Emitter
	text      int // the open block of text, -1 when there is none
	reasoning int
	calls     []call
	finish    string
	complete  bool // [DONE], or a whole answer
	replay    replay
	failure   *llm.Failure
}

type call struct {
	index int    // as the server counts; -1 when it does not
	id    string // as the server says
	block int
}

func newDecoder(out *llm.Emitter) *decoder { return &decoder{out: out, text: -1, reasoning: -1} }

// event takes one event and reports whether it wants more.
func (d *decoder) event(ev sse.Event) bool {
	if string(ev.Data) == "[DONE]" {
		d.complete = true
		return false
	}
	var c chunk
	var odd *json.UnmarshalTypeError
	err := json.Unmarshal(ev.Data, &c)
	if err != nil && (!errors.As(err, &odd) || len(c.Choices) == 0) { // one member of an unknown type is no reason to lose the rest
		d.malformed(ev)
		return false
	}
	if c.Data != nil && len(c.Choices) == 0 {
		c = *c.Data
	}
	d.take(&c)
	if len(c.Choices) == 0 || isSet(c.Error) || ev.Type == "error" {
		if f, ok := sse.InStream(ev.Data); ok {
			f.RequestID = ev.RequestID
			d.failure = f
			return false
		}
	}
	if ev.Whole {
		d.complete = len(c.Choices) > 0
		if !d.complete {
			d.malformed(ev)
		}
		return false
	}
	return !d.out.Done()
}

func (d *decoder) malformed(ev sse.Event) {
	switch {
	case ev.Last && !ev.Whole:
		return // the connection ended inside an event; end says so
	case ev.Whole && bytes.Contains(ev.Data, []byte(`"done_reason"`)):
		d.failure = llm.Fail(llm.CodeMalformed, "the server speaks Ollama's own API here; set the base URL to its OpenAI API, which ends in /v1")
	default:
		if f, ok := sse.InStream(ev.Data); ok {
			d.failure = f
			break
		}
		d.failure = llm.Fail(llm.CodeMalformed, "an event of the answer is not a chat completion: %.200q", ev.Data)
	}
	d.failure.RequestID = ev.RequestID
}

func (d *decoder) take(c *chunk) {
	if c.XGroq != nil {
		d.usage(c.XGroq.Usage)
	}
	for i := range c.Choices {
		ch := &c.Choices[i]
		if ch.Index != 0 {
			continue
		}
		d.usage(ch.Usage)
		if ch.Delta != nil {
			d.delta(ch.Delta)
		}
		if ch.Message != nil {
			d.delta(ch.Message)
		}
		if ch.FinishReason != nil && *ch.FinishReason != "" && d.finish == "" {
			d.finish = *ch.FinishReason
		}
	}
	d.usage(c.Usage)
}

func (d *decoder) delta(m *delta) {
	d.think(m)
	text, thought := content(m.Content, true)
	if thought != "" {
		d.say(&d.reasoning, llm.ReasoningBlock, thought)
	}
	if text != "" {
		d.say(&d.text, llm.TextBlock, text)
	}
	if m.Refusal != nil && *m.Refusal != "" {
		d.say(&d.text, llm.TextBlock, *m.Refusal)
	}
	for i := range m.ToolCalls {
		d.tool(&m.ToolCalls[i], len(m.ToolCalls) > 1)
	}
}

// think takes the reasoning of a delta from the first of its names that has some,
// and remembers the name: under it the reasoning is sent back.
func (d *decoder) think(m *delta) {
	d.replay.add(m.ReasoningDetails)
	if m.ReasoningContent != nil {
		d.replay.field("reasoning_content")
		d.say(&d.reasoning, llm.ReasoningBlock, *m.ReasoningContent)
		if *m.ReasoningContent != "" {
			return
		}
	}
	var s string
	if isSet(m.Reasoning) && json.Unmarshal(m.Reasoning, &s) == nil {
		d.replay.field("reasoning")
		d.say(&d.reasoning, llm.ReasoningBlock, s)
		if s != "" {
			return
		}
	}
	for _, raw := range m.ReasoningDetails {
		var detail struct{ Text, Summary string }
		if json.Unmarshal(raw, &detail) == nil {
			d.say(&d.reasoning, llm.ReasoningBlock, detail.Text+detail.Summary)
		}
	}
}

// say appends to the block, which is opened when there is something to say.
func (d *decoder) say(block *int, t llm.BlockType, s string) {
	if s == "" || d.out.Done() {
		return
	}
	if *block < 0 {
		*block = d.out.Open(t)
	}
	d.out.Append(*block, s)
}

// tool finds the call that a delta belongs to. An index finds it, unless another
// id stands there already; without an index the id does; a delta with neither
// goes on with the last call, unless it brings a name.
func (d *decoder) tool(t *toolDelta, several bool) {
	if t.ID == "" {
		t.ID = t.Function.ID
	}
	index := -1
	if t.Index != nil {
		index = *t.Index
	}
	at := -1
	for i := len(d.calls) - 1; i >= 0 && at < 0; i-- {
		c := &d.calls[i]
		switch {
		case index >= 0 && c.index == index && (t.ID == "" || c.id == "" || c.id == t.ID),
			index < 0 && t.ID != "" && c.id == t.ID,
			index < 0 && t.ID == "" && t.Function.Name == "" && !several:
			at = i
		case index >= 0 && c.index == index:
			i = 0 // the latest call of this index has another id: a new call
		}
	}
	if d.out.Done() {
		return
	}
	arguments := rawArguments(t.Function.Arguments)
	if at < 0 {
		if t.ID == "" && t.Function.Name == "" && arguments == "" {
			return // nothing to call
		}
		at = len(d.calls)
		d.calls = append(d.calls, call{index: index, block: d.out.Open(llm.CallBlock)})
		if d.out.Done() {
			return
		}
	}
	c := &d.calls[at]
	if c.id == "" {
		c.id = t.ID
	}
	d.out.Call(c.block, t.ID, t.Function.Name, arguments)
}

// rawArguments is the text of a string, nothing for null, and for an object the
// bytes as they came.
func rawArguments(raw json.RawMessage) string {
	if !isSet(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// content reads a delta's content: a string, or parts that are text or thinking,
// which has parts of its own but no further ones.
func content(raw json.RawMessage, outer bool) (text, thought string) {
	if !isSet(raw) {
		return "", ""
	}
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &text) // it was parsed once
		return text, ""
	}
	var parts []struct {
		Type     string
		Text     string
		Thinking json.RawMessage
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	var texts, thoughts strings.Builder
	for _, p := range parts {
		if p.Type != "thinking" {
			texts.WriteString(p.Text)
		} else if outer {
			inner, _ := content(p.Thinking, false)
			thoughts.WriteString(inner)
		}
	}
	return texts.String(), thoughts.String()
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (d *decoder) usage(u *usage) {
	if u == nil {
		return
	}
	cached, written, reasoning := u.Hit, int64(0), int64(0)
	if u.Details != nil {
		cached, written = max(cached, u.Details.Cached), u.Details.Written
	}
	if u.Out != nil {
		reasoning = u.Out.Reasoning
	}
	output := u.Completion
	if u.Total != u.Prompt+u.Completion+reasoning { // else it is counted beside, as xAI does
		reasoning = min(reasoning, output)
		output -= reasoning
	}
	d.out.Usage(llm.Usage{Input: max(0, u.Prompt-cached-written), CacheRead: cached, CacheWrite: written,
		Output: output, Reasoning: reasoning})
}

// end finishes the stream after the last event, or after f ended it.
func (d *decoder) end(f *llm.Failure) {
	switch {
	case d.failure != nil:
		d.out.Fail(d.failure)
	case d.finish == "" && !d.complete && f != nil:
		d.out.Fail(f)
	case d.finish == "" && !d.complete:
		d.out.Fail(llm.Fail(llm.CodeStreamClosed, "the connection ended before the answer did"))
	case f != nil && f.Code == llm.CodeAborted:
		d.out.Fail(f)
	default:
		d.conclude()
	}
}

func (d *decoder) conclude() {
	switch d.finish {
	case "", "stop", "tool_calls", "function_call", "eos", "end_turn", "stop_sequence", "tool_use":
		d.out.Finish(llm.Stop, d.replay.state())
	case "length", "max_tokens":
		d.out.Finish(llm.MaxTokens, d.replay.state())
	case "network_error":
		d.out.Fail(llm.Fail(llm.CodeServer, "the provider lost its model in the middle of the answer (network_error)"))
	default:
		d.out.Fail(llm.Fail(plain.Line(strings.ToUpper(d.finish), limits.Name), "the model stopped with %q", plain.Line(d.finish, limits.Name)))
	}
}
