package session

import (
	"fmt"
	"slices"

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
