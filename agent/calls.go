package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// callKey marks the context of a call that the loop makes.
type callKey struct{}

// call is one tool call of an answer.
type call struct {
	s      *schedule
	block  message.Block
	before *call // in the answer

	begun atomic.Bool // its body was let through
	// admitted: the decisions before the body are over; freed: so is the body; done:
	// so is everything. Each is closed once, in this order.
	admitted, freed, done mark
	result                *tool.Result // set before done
}

// mark is a channel that is closed once, and tells the scheduler.
type mark struct {
	ch   chan struct{}
	once sync.Once
}

func (c *call) reach(m *mark) {
	m.once.Do(func() { close(m.ch) })
	select {
	case c.s.changed <- struct{}{}:
	default:
	}
}

func (m *mark) reached() bool {
	select {
	case <-m.ch:
		return true
	default:
		return false
	}
}

// schedule runs the calls of one answer. It belongs to the driver, but for changed
// and broken.
type schedule struct {
	t        *turn
	calls    []*call
	logged   int  // calls whose results are in the log
	conclude bool // a tool asked for the end of the turn
	ended    bool // a person did, with a denial
	seen     int64
	changed  chan struct{}
	broken   atomic.Pointer[error] // why no further call is started
}

// stop has no further call started.
func (s *schedule) stop(err error) { s.broken.CompareAndSwap(nil, &err) }

func (s *schedule) err() error {
	if p := s.broken.Load(); p != nil {
		return *p
	}
	return nil
}

// callTools runs the calls of an answer and logs their results. It says whether a
// tool concluded the turn.
func (t *turn) callTools(ctx context.Context, blocks []message.Block) (conclude bool, err error) {
	s := &schedule{t: t, changed: make(chan struct{}, 1), seen: t.stepFrom}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	for _, b := range blocks {
		at := ctx
		parallel := ctx.Err() == nil && s.err() == nil && t.a.g.tools.ExecutionMode(ctx, s.callOf(b)) == tool.Parallel
		if parallel {
			s.until(func() bool { return s.occupied() < t.a.g.cfg.MaxParallel })
		} else {
			s.until(func() bool { return s.logged == len(s.calls) })
		}
		if s.stopped(); s.err() != nil || s.ended {
			at = dead // it is answered, and not run
		}
		c := s.start(at, b)
		if c == nil {
			break
		}
		s.until(c.admitted.reached)
		if !parallel {
			s.until(c.done.reached)
		}
	}
	s.until(func() bool { return s.logged == len(s.calls) })
	return s.conclude, s.err()
}

// stopped notes whether a person ended the turn with a denial.
func (s *schedule) stopped() {
	from := s.seen
	s.seen = s.t.a.session.Len()
	_, stopped, err := s.t.denied(from, scopeStop)
	if err != nil {
		s.stop(err)
	}
	s.ended = s.ended || stopped
}

// until logs results as they come, in their order, until cond is true. Whatever
// was started is awaited.
func (s *schedule) until(cond func() bool) {
	for {
		for s.logged < len(s.calls) && s.calls[s.logged].done.reached() {
			s.log(s.calls[s.logged])
			s.logged++
		}
		if cond() {
			return
		}
		<-s.changed
	}
}

// occupied is how many bodies run or are about to.
func (s *schedule) occupied() int {
	n := 0
	for _, c := range s.calls[s.logged:] {
		if !c.freed.reached() {
			n++
		}
	}
	return n
}

func (s *schedule) callOf(b message.Block) tool.Call {
	return tool.Call{CallID: b.ID, Name: b.Name, Arguments: lossless.Text(b.Arguments), Scope: s.t.a.scope}
}

// start logs a call and runs it on a goroutine of its own; nil if it could not be
// logged.
func (s *schedule) start(ctx context.Context, b message.Block) *call {
	t := s.t
	if _, err := t.a.session.Append(session.Call{Turn: t.n, Step: t.step, CallID: b.ID, Name: b.Name, Arguments: b.Arguments}); err != nil {
		s.stop(err)
		return nil
	}
	c := &call{s: s, block: b}
	c.admitted.ch, c.freed.ch, c.done.ch = make(chan struct{}), make(chan struct{}), make(chan struct{})
	if len(s.calls) > 0 {
		c.before = s.calls[len(s.calls)-1]
	}
	s.calls = append(s.calls, c)
	go func() {
		defer func() {
			c.reach(&c.admitted)
			c.reach(&c.freed)
			c.reach(&c.done)
		}()
		err := guard(func() error {
			c.result = t.a.g.tools.Execute(context.WithValue(ctx, callKey{}, c), s.callOf(b))
			return nil
		})
		if err != nil {
			s.stop(fmt.Errorf("call tool %s: %w", plain.Name(b.Name), err))
		}
	}()
	return c
}

// aroundBody is the outermost wrapper of the bodies of calls: it makes the
// checkpoint, and keeps what comes after the body in the order of the answer.
//
// It is a listener of the agents plugin: that of an agent would be skipped while
// the agent's fiber unloads, and a call that was just admitted would do without.
func aroundBody(ctx context.Context, x *tool.Exec, next func(context.Context) (*tool.Result, error)) (*tool.Result, error) {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok || x.Parent != 0 || x.Scope != c.s.t.a.scope || x.CallID != c.block.ID || c.begun.Swap(true) {
		return next(ctx)
	}
	c.reach(&c.admitted)
	if err := c.s.t.a.session.Checkpoint(ctx); err != nil {
		err = storeFailure(err)
		c.s.stop(err)
		return nil, &tool.Error{Name: "SessionError", Code: CodeStore, Message: "the tool was not called, because the session could not be written: " + err.Error(), Err: err}
	}
	defer func() {
		c.reach(&c.freed)
		if c.before != nil {
			<-c.before.done.ch
		}
	}()
	return next(ctx)
}

// log appends the result of a call that is done.
func (s *schedule) log(c *call) {
	t, r := s.t, c.result
	if r == nil {
		p := session.Pending{ID: c.block.ID, Name: c.block.Name, Called: true}
		if _, err := t.a.session.Append(t.unanswered(p)); err != nil {
			s.stop(err)
		}
		s.stop(fmt.Errorf("call tool %s: it ended its goroutine instead of returning", plain.Name(c.block.Name)))
		return
	}
	payload := session.Result{
		Turn: t.n, Step: t.step,
		Message: message.Result(newID(), c.block.ID, r.IsError, t.content(r.Content)...),
	}
	if r.Error != nil {
		name := r.Error.Name
		if name == "" {
			name = "Error"
		}
		payload.Error = &session.ResultError{Name: name, Code: r.Error.Code}
	}
	if len(r.Meta) > 0 {
		if meta, err := lossless.Parse(r.Meta); err == nil {
			payload.Meta = meta
		}
	}
	if _, err := t.a.session.Append(payload); err != nil {
		s.stop(err)
		return
	}
	s.conclude = s.conclude || r.ConcludeTurn
	for _, m := range r.Contexts {
		if content := t.content(m.Content); len(content) > 0 {
			if err := t.a.Send(message.FromPlugin(newID(), c.block.Name, content...), session.NextStep, false); err != nil {
				t.a.fail(t.n, t.step, err)
			}
		}
	}
}

// content is what the model sees of a tool's content.
func (t *turn) content(blocks []tool.Block) []message.Block {
	room, images := limits.AgentResult, 0
	var out []message.Block
	for _, b := range blocks {
		text := b.Text
		switch {
		case b.Type == string(message.ImageBlock) && b.Raw != nil:
			image, err := t.image(b.Raw, images)
			if err == nil {
				images++
				out = append(out, image)
				continue
			}
			text = "[an image is not shown: " + plain.Error(err.Error()) + "]"
		case b.Type != string(message.TextBlock):
			text = string(b.Raw)
		}
		if text == "" {
			continue
		}
		text = cutMiddle(text, room)
		room = max(room-len(text), 0)
		out = append(out, message.Plain(text))
	}
	return out
}

// cutMiddle cuts a text to about room bytes: three quarters of it are the
// beginning, the rest the end.
func cutMiddle(text string, room int) string {
	if len(text) <= room {
		return text
	}
	head, tail := room*3/4, len(text)-room/4
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[… %d of %d bytes are left out here; ask for a smaller part …]\n%s", text[:head], tail-head, len(text), text[tail:])
}

// image is an image of a tool's content: one that names an attachment of the
// session, or one with its bytes as MCP has it, which are attached.
func (t *turn) image(raw lossless.Text, before int) (message.Block, error) {
	if before >= limits.AgentImages {
		return message.Block{}, fmt.Errorf("a result shows at most %d images", limits.AgentImages)
	}
	if !t.images {
		return message.Block{}, errors.New("the model does not take images")
	}
	var p struct {
		Attachment *message.Attachment `json:"attachment"`
		Data       string              `json:"data"`
		MIMEType   string              `json:"mimeType"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return message.Block{}, err
	}
	log := t.a.session
	if p.Attachment != nil {
		_, err := log.Attachment(p.Attachment.Hash)
		return message.Block{Type: message.ImageBlock, Attachment: p.Attachment}, err
	}
	if !strings.HasPrefix(p.MIMEType, "image/") {
		return message.Block{}, errors.New("it needs an attachment, or data with the mimeType of an image")
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		return message.Block{}, fmt.Errorf("read its data: %w", err)
	}
	kept, err := log.Attach(p.MIMEType, "", data)
	return message.Block{Type: message.ImageBlock, Attachment: &kept}, err
}
