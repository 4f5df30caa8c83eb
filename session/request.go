package session

import (
	"fmt"

	"github.com/dsh-go/dsh/session/message"
)

// A Request is everything that a request to the model is made of. An adapter's
// body is a function of it alone, so whoever has the log can make the same bytes
// again.
type Request struct {
	Header Header
	// Messages are those of the surface, in order, without empty ones.
	Messages []message.Message
}

// Request returns what the next request is made of, as the log is now. The caller
// owns it. It fails while the log has no request/header.
func (l *Log) Request() (Request, error) { return l.view().request() }

// RequestAt returns what Request returned when the log had its first n events. It
// replays them, which takes time; it is for tests and displays.
func (l *Log) RequestAt(n int64) (Request, error) {
	events := l.tail(0)
	if n < 0 || n > int64(len(events)) {
		return Request{}, fmt.Errorf("rebuild request: %w: the log has %d events, not %d", ErrBoundary, len(events), n)
	}
	replayed, err := NewLog(l.meta, events[:n])
	if err != nil {
		return Request{}, fmt.Errorf("rebuild request: %w", err)
	}
	return replayed.Request()
}

func (f fold) request() (Request, error) {
	if f.header == nil {
		return Request{}, fmt.Errorf("rebuild request: %w", errNoHeader)
	}
	r := Request{Header: *f.header}
	r.Header.Tools = append([]message.Tool(nil), f.header.Tools...)
	r.Messages = f.surface.messages()
	return r, nil
}

// Header returns the last logged header of a request, and whether there is one.
func (l *Log) Header() (Header, bool) {
	f := l.view()
	if f.header == nil {
		return Header{}, false
	}
	h := *f.header
	h.Tools = append([]message.Tool(nil), f.header.Tools...)
	return h, true
}

// Surface returns copies of the nodes that the model sees, in order. What
// compaction replaces is named by their Seq; see [Op].
func (l *Log) Surface() []Node {
	f := l.view()
	nodes := make([]Node, len(f.surface.nodes))
	for i, n := range f.surface.nodes {
		nodes[i] = Node{n.seq, n.kind, n.msg.Clone()}
	}
	return nodes
}

// LastNode returns a copy of the last node of the surface that matches, and whether
// there is one. match must not change what it is given.
func (l *Log) LastNode(match func(Node) bool) (Node, bool) {
	nodes := l.view().surface.nodes
	for i := len(nodes) - 1; i >= 0; i-- {
		if n := nodes[i]; match(Node{n.seq, n.kind, n.msg}) {
			return Node{n.seq, n.kind, n.msg.Clone()}, true
		}
	}
	return Node{}, false
}

// A Pending is a call of the open step that has no result yet.
type Pending struct {
	ID, Name  string
	Arguments message.Text
	Called    bool // it has its tool/call, so its body may have run
}

// Unanswered returns the calls of the open step that have no result, in the order
// in which their results are due.
func (l *Log) Unanswered() []Pending {
	f := l.view()
	var pending []Pending
	for i := f.resulted; i < len(f.calls); i++ {
		c := f.calls[i]
		pending = append(pending, Pending{c.id, c.name, c.args, i < f.called})
	}
	return pending
}
