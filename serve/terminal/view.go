package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// Cards show calls and results as their tools want it. A nil card is shown as the
// name of the tool and the text of the result.
type Cards interface {
	Call(name string, arguments message.Text) *tool.Card
	Result(name string, arguments message.Text, r session.Result) *tool.Card
}

// Options say how a View shows a session.
type Options struct {
	Out   io.Writer
	Color bool
	Width int   // columns; 0 is 80
	Cards Cards // nil: none

	// Live shows what goes on, in a line that is overwritten, and leaves out what
	// the person has just typed.
	Live bool
	// Answers shows the last answer of a turn too. Where it goes to standard output
	// it need not be shown twice.
	Answers bool
}

// A View writes what a session does.
type View struct {
	o Options

	mu       sync.Mutex
	status   string // the line that is overwritten; "" if there is none
	drawn    time.Time
	streamed int
	calls    map[string]session.Call
	asked    map[string]session.ApprovalAsked
	tools    map[string]bool
	quiet    bool // the person is asked something
	ending   bool // the turn was cancelled
}

// redraw is the shortest time between two drawings of the status.
const redraw = 80 * time.Millisecond

// New returns a View.
func New(o Options) *View {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	return &View{o: o, calls: map[string]session.Call{}, asked: map[string]session.ApprovalAsked{}}
}

// Event shows the next event of the log. One that cannot be read is passed over.
func (v *View) Event(e session.Event) {
	p, err := e.Payload()
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch p := p.(type) {
	case session.TurnStart:
		v.turnStart(p)
	case session.TurnEnd:
		v.turnEnd(p)
	case session.UserMessage:
		v.user(p)
	case session.RequestHeader:
		v.header(p)
	case session.Chunk:
		v.chunk(p)
	case session.AssistantMessage:
		v.answer(p)
	case session.Call:
		v.call(p)
	case session.Result:
		v.result(p)
	case session.Retry:
		v.print(line{yellow, fmt.Sprintf("the model's provider failed (%s); attempt %d after %s: %s", plain.Name(p.Failure.Code), p.Attempt+1,
			time.Duration(p.DelayMs)*time.Millisecond, plain.Line(p.Failure.Message, limits.Preview))})
	case session.ApprovalAsked:
		v.asked[p.ID] = p
	case session.ApprovalDecided:
		v.decided(p)
	case session.Todo:
		v.todo(p)
	case session.LLMCall:
		v.print(line{dim, "the model was asked aside: " + plain.Name(p.Purpose)})
	case session.CompactEnd:
		v.print(line{dim, fmt.Sprintf("older messages were summarized (%s, %d replaced)", plain.Name(p.Outcome), p.Replaced)})
	}
}

// Progress shows live output of a running call.
func (v *View) Progress(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	rows := strings.Split(strings.TrimRight(plain.Terminal(text), "\n"), "\n")
	if last := strings.TrimSpace(rows[len(rows)-1]); last != "" {
		v.draw("  "+last, false)
	}
}

// Ending says that the turn was cancelled: it waits for what runs to end, and for the
// model no more.
func (v *View) Ending() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ending = true
	if v.o.Live {
		v.wait()
	}
}

// wait draws what is waited for.
func (v *View) wait() {
	what := "waiting for the model"
	if v.ending {
		what = "ending the turn"
	}
	v.draw(what, true)
}

// Clear takes away the line that is overwritten.
func (v *View) Clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
}

func (v *View) turnStart(p session.TurnStart) {
	v.ending = false
	if v.o.Live {
		v.wait()
		return
	}
	v.print(line{bold, fmt.Sprintf("── turn %d", p.Turn)})
}

func (v *View) turnEnd(p session.TurnEnd) {
	v.clear()
	style := red
	if p.Reason.Kind == session.EndCompleted {
		if v.o.Live {
			return
		}
		style = dim
	}
	v.print(line{style, "turn " + fmt.Sprint(p.Turn) + ": " + Outcome(p.Reason)})
}

// Outcome says why a turn ended, in one line.
func Outcome(r session.EndReason) string {
	text := string(r.Kind)
	var why string
	switch {
	case r.Error != nil:
		why = r.Error.Error()
	case r.Detail != "":
		why = r.Detail
	case r.Abort != nil:
		why = strings.TrimSpace("by " + r.Abort.Kind + " " + r.Abort.Text)
	}
	if why != "" {
		text += ": " + why
	}
	return plain.Line(text, limits.ErrorText)
}

func (v *View) user(p session.UserMessage) {
	text := p.Message.Text()
	if p.Message.Source.Kind != message.SourceUser {
		if !v.o.Live {
			v.print(line{dim, fmt.Sprintf("%s tells the model %d characters", plain.Name(p.Message.Source.Name), len([]rune(text)))})
		}
		return
	}
	if v.o.Live {
		return
	}
	v.print(line{bold, "you:"})
	v.paragraph(text)
}

// header tells which tools came and went.
func (v *View) header(p session.RequestHeader) {
	now := map[string]bool{}
	var came, gone []string
	for _, t := range p.Header.Tools {
		now[t.Name] = true
		if !v.tools[t.Name] {
			came = append(came, plain.Name(t.Name))
		}
	}
	for name := range v.tools {
		if !now[name] {
			gone = append(gone, plain.Name(name))
		}
	}
	first := v.tools == nil
	v.tools = now
	if first || p.Reason == session.HeaderInitial {
		return
	}
	if len(came) > 0 {
		v.print(line{cyan, "the model has new tools: " + strings.Join(came, ", ")})
	}
	if len(gone) > 0 {
		v.print(line{cyan, "tools that have gone: " + strings.Join(gone, ", ")})
	}
}

func (v *View) chunk(p session.Chunk) {
	if !v.o.Live {
		return
	}
	c := p.Chunk
	v.streamed += len(c.Text)
	what := ""
	switch c.Type {
	case message.ReasoningDelta:
		what = "the model thinks"
	case message.TextDelta:
		what = "the model answers"
	case message.CallDelta:
		what = "the model writes a call"
	}
	if what != "" {
		v.draw(fmt.Sprintf("%s (%d characters)", what, v.streamed), false)
	}
}

func (v *View) answer(p session.AssistantMessage) {
	v.clear()
	v.streamed = 0
	for _, b := range p.Message.Content {
		switch {
		case b.Type == message.ReasoningBlock && !v.o.Live && b.Text != "":
			for _, l := range block(string(b.Text), dim, v.o.Width-2, shownItems) {
				v.print(line{l.style, "~ " + l.text})
			}
		case b.Type == message.TextBlock && (v.o.Answers || len(p.Message.Calls()) > 0):
			v.paragraph(string(b.Text))
		}
	}
}

func (v *View) call(p session.Call) {
	v.calls[p.CallID] = p
	var card *tool.Card
	if v.o.Cards != nil {
		card = v.o.Cards.Call(p.Name, p.Arguments)
	}
	v.print(line{cyan, "● " + plain.Line(plain.Visible(titleOf(plain.Name(p.Name), card)), v.o.Width-2)})
	v.indented(callLines(card, v.o.Width-4))
	if v.o.Live {
		v.draw("  runs", true)
	}
}

func (v *View) result(p session.Result) {
	id := p.Message.Source.CallID
	var content []message.Block
	failed := false
	for _, b := range p.Message.Content {
		if b.Type == message.ResultBlock {
			id, content, failed = b.CallID, b.Content, b.IsError
		}
	}
	c, ok := v.calls[id]
	if !ok {
		c.Name = "a call that was not begun"
	}
	delete(v.calls, id)
	if len(v.calls) > 0 || !ok {
		v.print(line{dim, "○ " + plain.Name(c.Name)})
	}
	switch {
	case failed:
		v.indented(block(message.JoinText(content), red, v.o.Width-4, shownLines))
	case v.o.Cards != nil:
		v.indented(resultLines(v.o.Cards.Result(c.Name, c.Arguments, p), v.o.Width-4))
	default:
		v.indented(block(message.JoinText(content), dim, v.o.Width-4, shownLines))
	}
	if v.o.Live {
		v.wait()
	}
}

func (v *View) decided(p session.ApprovalDecided) {
	q := v.asked[p.ID]
	delete(v.asked, p.ID)
	if p.Decision != "deny" {
		return
	}
	text := "denied"
	switch p.Source {
	case "":
	case "cancelled": // nobody has decided
		text, p.Reason = p.Source, ""
	default:
		text += " (" + plain.Name(p.Source) + ")"
	}
	if q.Summary != "" {
		text += ": " + plain.Line(plain.Visible(q.Summary), limits.Preview)
	}
	if p.Reason != "" {
		text += " — " + plain.Line(p.Reason, limits.ErrorText)
	}
	v.print(line{red, text})
}

func (v *View) todo(p session.Todo) {
	for _, t := range p.Todos {
		mark := map[string]string{"completed": "[x] ", "in_progress": "[>] "}[t.Status]
		if mark == "" {
			mark = "[ ] "
		}
		v.indented([]line{{dim, mark + plain.Line(t.Content, v.o.Width-8)}})
	}
}

// paragraph writes a text of the conversation, whole.
func (v *View) paragraph(text string) {
	text = strings.Trim(plain.Terminal(text), "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	for row := range strings.SplitSeq(text, "\n") {
		v.print(line{"", row})
	}
}

func (v *View) indented(lines []line) {
	for _, l := range lines {
		v.print(line{l.style, "    " + l.text})
	}
}

// print writes a line above the one that is overwritten.
func (v *View) print(l line) {
	v.clear()
	_, _ = io.WriteString(v.o.Out, v.styled(l)+"\n") // nobody can be told
}

func (v *View) styled(l line) string {
	if !v.o.Color || l.style == "" {
		return l.text
	}
	return l.style + l.text + reset
}

// draw shows what goes on now.
func (v *View) draw(text string, now bool) {
	if !v.o.Live || v.quiet || !now && time.Since(v.drawn) < redraw {
		return
	}
	v.drawn = time.Now()
	v.status = plain.Line(text, v.o.Width-4)
	_, _ = io.WriteString(v.o.Out, "\r\x1b[K"+v.styled(line{dim, "… " + v.status}))
}

func (v *View) clear() {
	if v.status != "" {
		v.status = ""
		_, _ = io.WriteString(v.o.Out, "\r\x1b[K")
	}
}
