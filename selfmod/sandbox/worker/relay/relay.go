// Package relay decides who reads a pipe, so that the goroutine that has read
// something can act on it at once and at length, and nobody has to be woken for
// the case that more comes meanwhile.
//
// One goroutine is the reader. When it has something else to do it leaves, and
// comes back afterwards. A second goroutine, the standby, sleeps in the kernel;
// only when something can be read while the reader is away does the kernel wake
// it, and it is the reader from then on. The one that comes back too late may
// become the standby.
//
// A handover between goroutines costs a wake-up of a thread, 15 to 30 µs on a
// machine of two cores; leaving and coming back costs two short calls of the
// kernel.
//
// Leave, Back and Wait are for the reader alone, Standby for one goroutine at a
// time; Wake and Close are for any. Only Linux has a Relay: elsewhere [New]
// returns nil, and the reader must not act itself on what takes long. A Relay is
// for the life of a process: its descriptors are not given back.
package relay

import (
	"sync"
	"time"
)

// Relay is the state of one pipe.
type Relay struct {
	sys

	mu      sync.Mutex
	away    bool // the reader has left, and may come back
	standby bool // somebody sleeps until something can be read
	closed  bool
}

// Leave lets the standby take over as soon as something can be read. It reports
// whether there is a standby; if not, the reader must not go away. What the reader
// has buffered is not seen: it must have none.
func (r *Relay) Leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.standby || r.closed || r.away {
		return false
	}
	if r.arm(true) != nil {
		return false
	}
	r.away = true
	return true
}

// Back makes the one that left the reader again, unless the standby has taken
// over.
func (r *Relay) Back() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.away {
		return false
	}
	r.away = false
	_ = r.arm(false) // if it stays armed the standby wakes for nothing
	return true
}

// Standby waits until something can be read while the reader is away. The caller
// is the reader then; false: the Relay is closed, or there is a standby already.
func (r *Relay) Standby() bool {
	r.mu.Lock()
	if r.standby || r.closed {
		r.mu.Unlock()
		return false
	}
	r.standby = true
	r.mu.Unlock()
	for {
		slept := r.sleep()
		r.mu.Lock()
		if r.closed || r.away || !slept {
			open := !r.closed && slept
			r.away, r.standby = false, false
			r.mu.Unlock()
			return open
		}
		r.mu.Unlock()
	}
}

// Wait returns when something can be read, when the limit has passed or when
// Wake was called, whatever comes first. It reports the first.
func (r *Relay) Wait(limit time.Duration) bool { return r.wait(limit) }

// Wake ends the Wait that is under way, or the next one.
func (r *Relay) Wake() { r.wake() }

// Close ends the standby's sleep.
func (r *Relay) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.end()
	}
}
