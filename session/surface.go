package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// A Node is one entry of the surface: the events whose messages the model sees,
// in order.
type Node struct {
	Seq  int64
	Type Type
	// Message is the node's own copy. One with empty content is not sent.
	Message message.Message
}

// node is a Node inside of the fold; its message is shared and never changed.
type node struct {
	seq   int64
	kind  Type
	owner int64 // of a result: the seq of the answer that holds its call
	calls bool  // of an answer: it holds tool calls
	msg   message.Message
}

// surface is the list of nodes. Appending shares the array, everything else
// makes a new one, so that a copy of a fold stays what it was.
type surface struct{ nodes []node }

// find returns the position of a node; most operations are near the end.
func (s *surface) find(seq int64) (int, error) {
	for i := len(s.nodes) - 1; i >= 0; i-- {
		if s.nodes[i].seq == seq {
			return i, nil
		}
	}
	return 0, fmt.Errorf("event %d is not on the surface", seq)
}

// messages returns copies of the messages that are not empty.
func (s *surface) messages() []message.Message {
	shown := make([]message.Message, 0, len(s.nodes))
	for _, n := range s.nodes {
		if len(n.msg.Content) > 0 {
			shown = append(shown, n.msg)
		}
	}
	message.CloneAll(shown)
	return shown
}

func (s *surface) append(n node) { s.nodes = append(s.nodes, n) }

// insert puts n before a node, but not between an answer and its results.
func (s *surface) insert(n node, before int64) error {
	i, err := s.find(before)
	if err != nil {
		return err
	}
	if s.nodes[i].kind == TypeResult {
		return fmt.Errorf("event %d is a tool's result, which stays behind the answer that called it", before)
	}
	s.nodes = slices.Insert(slices.Clone(s.nodes), i, n)
	return nil
}

// replace puts n, or nothing if its message is empty, in the place of a range.
func (s *surface) replace(n node, op Op, sources []int64) error {
	from, to, err := s.span(op)
	if err != nil {
		return err
	}
	for _, shadowed := range s.nodes[from:to] {
		if !slices.Contains(sources, shadowed.seq) {
			return fmt.Errorf("sourceEventSeqs does not name event %d, which is replaced", shadowed.seq)
		}
	}
	if err := pairs(s.nodes, from, to); err != nil {
		return err
	}
	if len(n.msg.Content) == 0 {
		s.nodes = slices.Concat(s.nodes[:from], s.nodes[to:])
		return nil
	}
	s.nodes = slices.Concat(s.nodes[:from], []node{n}, s.nodes[to:])
	return nil
}

// span returns the positions of an operation's range, the end excluded.
func (s *surface) span(op Op) (from, to int, err error) {
	if from, err = s.find(op.Start); err != nil {
		return 0, 0, err
	}
	if to, err = s.find(op.End); err != nil {
		return 0, 0, err
	}
	if to < from {
		return 0, 0, fmt.Errorf("on the surface event %d comes after event %d; start comes first", op.Start, op.End)
	}
	return from, to + 1, nil
}

// pairs refuses a range that would part calls from their results. The results of
// an answer follow it, so only the ends can cut.
func pairs(nodes []node, from, to int) error {
	first, last := nodes[from], nodes[to-1]
	if first.kind == TypeResult {
		return fmt.Errorf("the range begins with event %d, a result of the calls in event %d; begin there", first.seq, first.owner)
	}
	if to < len(nodes) && nodes[to].kind == TypeResult {
		return fmt.Errorf("the range ends with event %d, before event %d, a result of the calls in event %d; take all of them", last.seq, nodes[to].seq, nodes[to].owner)
	}
	return nil
}

// prune replaces one result by another that differs in the content only.
func (s *surface) prune(n node, op Op, sources []int64, old, data lossless.Value) error {
	if op.Start != op.End {
		return fmt.Errorf("a tool/result replaces exactly one tool/result")
	}
	i, err := s.find(op.Start)
	if err != nil {
		return err
	}
	if s.nodes[i].kind != TypeResult {
		return fmt.Errorf("event %d is not a tool/result", op.Start)
	}
	if !slices.Contains(sources, op.Start) {
		return fmt.Errorf("sourceEventSeqs does not name event %d, which is replaced", op.Start)
	}
	if a, b := outside(old), outside(data); a != b {
		return fmt.Errorf("only the content of the result may differ from event %d", op.Start)
	}
	n.owner = s.nodes[i].owner
	s.nodes = slices.Clone(s.nodes)
	s.nodes[i] = n
	return nil
}

// outside returns the text of a tool/result without its inner content.
func outside(data lossless.Value) string {
	msg, _ := data.Get("message")
	content, _ := msg.Get("content")
	if content.Len() == 1 {
		msg = msg.With("content", without(content.At(0), "content"))
	}
	return data.With("message", msg).String()
}

func without(v lossless.Value, key string) lossless.Value {
	var kept []lossless.Member
	for k, m := range v.Members() {
		if k != key {
			kept = append(kept, lossless.M(k, m))
		}
	}
	return lossless.Obj(kept...)
}

// user takes in a user/message.
func (f *fold) user(e Event, data lossless.Value) error {
	m, err := message.Read(data)
	if err != nil {
		return err
	}
	if err := m.Check(); err != nil {
		return err
	}
	if m.Role != message.User {
		return errors.New("the role of a user/message is user")
	}
	for _, b := range m.Content {
		if b.Type == message.ResultBlock {
			return errors.New("a tool-result is the message of a tool/result")
		}
	}
	if len(m.Content) == 0 && e.op.Kind != Replace {
		return errors.New("its content is empty, which only a replace may have: it removes")
	}
	n := node{seq: e.Seq, kind: TypeUser, msg: m}
	switch e.op.Kind {
	case Insert:
		return f.surface.insert(n, e.op.Start)
	case Replace:
		return f.replace(n, e)
	}
	if f.stepOpen && f.resulted < len(f.calls) {
		return fmt.Errorf("call %q has no result yet; nothing comes between an answer and its results", plain.Name(f.calls[f.resulted].id))
	}
	f.claimed = unclaimed(f.claimed, func(id string) bool { return id == m.ID })
	f.surface.append(n)
	return nil
}

// unclaimed returns the messages without those that match.
func unclaimed(claimed []message.Message, match func(id string) bool) []message.Message {
	var rest []message.Message
	for _, m := range claimed {
		if !match(m.ID) {
			rest = append(rest, m)
		}
	}
	return rest
}

// replace keeps what the open step still needs on the surface.
func (f *fold) replace(n node, e Event) error {
	if len(f.calls) > f.resulted {
		from, to, err := f.surface.span(e.op)
		if err != nil {
			return err
		}
		for _, shadowed := range f.surface.nodes[from:to] {
			if shadowed.seq == f.calls[0].owner {
				return fmt.Errorf("event %d holds calls without a result; they have to be answered first", shadowed.seq)
			}
		}
	}
	return f.surface.replace(n, e.op, e.sources)
}

// assistant takes in an assistant/message and what it calls.
func (f *fold) assistant(e Event, data lossless.Value) error {
	if err := f.inStep(data); err != nil {
		return err
	}
	m, err := readMessage(data)
	if err != nil {
		return err
	}
	if m.Role != message.Assistant {
		return errors.New("the role of an assistant/message is assistant")
	}
	blocks := m.Calls()
	n := node{seq: e.Seq, kind: TypeAssistant, calls: len(blocks) > 0, msg: m}
	switch e.op.Kind {
	case Insert:
		return errors.New("only a user/message is inserted")
	case Replace:
		if n.calls {
			return errors.New("an answer that replaces others may not call tools")
		}
		return f.replace(n, e)
	}
	if f.answered {
		return fmt.Errorf("step %d of turn %d has its answer", f.step, f.turn)
	}
	calls := make([]call, len(blocks))
	for i, b := range blocks {
		if slices.ContainsFunc(calls[:i], func(c call) bool { return c.id == b.ID }) {
			return fmt.Errorf("two calls have the id %q; give each one its own", plain.Name(b.ID))
		}
		calls[i] = call{b.ID, b.Name, b.Arguments, e.Seq}
	}
	f.answered, f.calls, f.called, f.resulted = true, calls, 0, 0
	f.claimed = nil
	f.surface.append(n)
	return nil
}

// readMessage reads the message in a payload, and checks it.
func readMessage(data lossless.Value) (message.Message, error) {
	v, _ := data.Get("message")
	m, err := message.Read(v)
	if err == nil {
		err = m.Check()
	}
	return m, err
}

// call takes in a tool/call: the next block of the answer, as it is there.
func (f *fold) call(data lossless.Value) error {
	if err := f.inStep(data); err != nil {
		return err
	}
	id, _ := data.Get("callId")
	name, _ := data.Get("name")
	args, _ := data.Get("arguments")
	text, ok := message.ReadText(args)
	if !ok {
		return errors.New("arguments is a text")
	}
	// A call whose result says that it was not started has no tool/call.
	next := max(f.called, f.resulted)
	if next >= len(f.calls) {
		return fmt.Errorf("the answer of step %d of turn %d has %d calls, and all were made", f.step, f.turn, len(f.calls))
	}
	want := f.calls[next]
	if id.Str() != want.id {
		return fmt.Errorf("the next call of the answer is %q, not %q", plain.Name(want.id), plain.Name(id.Str()))
	}
	if name.Str() != want.name || text != want.args {
		return fmt.Errorf("call %q has another name or other arguments than the answer says", plain.Name(want.id))
	}
	f.called = next + 1
	return nil
}

// result takes in a tool/result: of the next call that has none, or the pruned
// form of an earlier one.
func (f *fold) result(e Event, data lossless.Value, lookup func(int64) Event) error {
	m, err := readMessage(data)
	if err != nil {
		return err
	}
	if len(m.Content) != 1 || m.Content[0].Type != message.ResultBlock {
		return errors.New("the message of a tool/result holds one tool-result block")
	}
	n := node{seq: e.Seq, kind: TypeResult, msg: m}
	switch e.op.Kind {
	case Insert:
		return errors.New("only a user/message is inserted")
	case Replace:
		if e.op.Start >= e.Seq {
			return fmt.Errorf("event %d is not before it", e.op.Start)
		}
		old, err := lossless.Parse([]byte(lookup(e.op.Start).Data()))
		if err != nil {
			return err
		}
		return f.surface.prune(n, e.op, e.sources, old, data)
	}
	if err := f.inStep(data); err != nil {
		return err
	}
	id := m.Content[0].CallID
	if f.resulted >= len(f.calls) {
		return fmt.Errorf("call %q: no call of the step waits for a result", plain.Name(id))
	}
	want := f.calls[f.resulted]
	if id != want.id {
		return fmt.Errorf("the next result is that of call %q, not of %q; results have the order of the calls", plain.Name(want.id), plain.Name(id))
	}
	failure, _ := data.Get("error")
	code, _ := failure.Get("code")
	if f.resulted >= f.called && code.Str() != CodeNotStarted {
		return fmt.Errorf("call %q has no tool/call; its result needs the error code %s", plain.Name(id), CodeNotStarted)
	}
	n.owner = want.owner
	f.resulted++
	f.surface.append(n)
	return nil
}
