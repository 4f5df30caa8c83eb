package mount

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/dsh-go/dsh/limits"
)

// queue holds the events that a mount has yet to hear. It has a goroutine only
// while there are any.
type queue struct {
	dropped atomic.Uint64

	mu      sync.Mutex
	items   []queued
	running bool
}

// queued is one event on its way to one listener. It is a running call of the
// mount's fiber, so that an unmount waits for it.
type queued struct {
	l    *listener
	args json.RawMessage
	ctx  context.Context
	done func()
}

// enqueue hands an event to a listener without waiting for it.
func (m *Mount) enqueue(l *listener, args json.RawMessage) {
	q := &m.queue
	q.mu.Lock()
	full := len(q.items) >= limits.EventQueue
	q.mu.Unlock()
	if full {
		q.dropped.Add(1)
		return
	}
	// Not of the emitter's chain: nobody waits for it there.
	ctx, done, err := l.r.c.Fiber().Enter(context.Background(), l.entry())
	if err != nil {
		return // the mount is going: it hears nothing new
	}
	q.mu.Lock()
	q.items = append(q.items, queued{l, args, ctx, done})
	start := !q.running
	q.running = true
	q.mu.Unlock()
	if start && !m.set.spawn(m.deliver) {
		m.deliver() // nothing is left that could wait for it
	}
}

// deliver empties the queue in order. A listener that fails is recorded and
// hears the next event.
func (m *Mount) deliver() {
	q := &m.queue
	for {
		q.mu.Lock()
		if len(q.items) == 0 {
			q.running, q.items = false, nil
			q.mu.Unlock()
			return
		}
		item := q.items[0]
		q.items = q.items[1:]
		q.mu.Unlock()
		if !item.l.r.ended() {
			if _, err := item.l.enter(item.ctx, item.args, nil); err != nil && item.l.r.vm.Dead() == nil {
				m.fault(err)
			}
		}
		item.done()
	}
}
