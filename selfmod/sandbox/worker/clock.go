package worker

import (
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/lock"
)

// grace is how long past its limit an entry may go on before it is called
// stuck, which costs all mounts of the worker their state: one native call over
// a large text can take hundreds of milliseconds on a busy machine.
const grace = 500 * time.Millisecond

// starving is how long past its limit an entry may go on where the machine gives
// the process less than half of the grace in processor time: then what takes long
// is the waiting.
const starving = 8 * grace

// pokes is how often the engine is made to look within the grace: where every
// step is a native call that takes long, it would look too late by itself.
const pokes = 25 * time.Millisecond

// clock measures and bounds the time that the outermost entry of a VM spends
// inside the engine. Only the thread that owns the VM uses it; the watchdog's
// timer reads due.
type clock struct {
	vm        *qjs.VM
	remaining time.Duration
	used      time.Duration // of all entries ever
	since     time.Time
	running   bool
	watch     *time.Timer
	due       atomic.Int64 // when the running entry is stuck, on the clock of sinceStart; 0: not running

	late    atomic.Int64 // the due of the entry that was last seen past its limit
	lateCPU atomic.Int64 // the processor time of the process then
}

var start = time.Now()

func sinceStart() int64 { return int64(time.Since(start)) }

// init binds the clock to its VM. On goroutines of their own, poke is called
// while an entry is past its limit, and stuck when it is past the grace too.
func (c *clock) init(vm *qjs.VM, poke, stuck func()) {
	c.vm = vm
	c.watch = time.AfterFunc(time.Hour, func() {
		due := c.due.Load()
		if due == 0 {
			return
		}
		left := time.Duration(due - sinceStart())
		switch {
		case left <= 0 && !c.starved(due):
			stuck()
		case left <= grace:
			if c.late.Swap(due) != due {
				c.lateCPU.Store(int64(lock.Used()))
			}
			poke()
			if left <= 0 {
				left = pokes
			}
			c.watch.Reset(min(left, pokes))
		default: // of an earlier entry
			c.watch.Reset(left - grace)
		}
	})
	c.watch.Stop()
}

// starved says whether an entry that has used up its grace had too little of the
// processor for it to be called stuck.
func (c *clock) starved(due int64) bool {
	used := lock.Used()
	if used == 0 || sinceStart()-due > int64(starving-grace) {
		return false // not known, or long enough
	}
	// One that was not seen past its limit before ran as rarely as this watchdog.
	return c.late.Load() != due || used-time.Duration(c.lateCPU.Load()) < grace/2
}

// arm gives the entry its limit.
func (c *clock) arm(limit time.Duration) { c.remaining = limit }

// resume lets the clock run. An entry that has used up its time is interrupted
// as soon as the engine looks.
func (c *clock) resume() {
	c.since, c.running = time.Now(), true
	c.vm.SetDeadline(c.since.Add(c.remaining))
	left := max(0, c.remaining)
	c.due.Store(sinceStart() + int64(left+grace))
	c.watch.Reset(left)
}

// pause stops the clock.
func (c *clock) pause() {
	if !c.running {
		return
	}
	d := time.Since(c.since)
	c.used += d
	c.remaining -= d
	c.running = false
	c.due.Store(0)
	c.watch.Stop()
	c.vm.SetDeadline(time.Time{})
}

// rearm gives the running entry a new limit from now on.
func (c *clock) rearm(limit time.Duration) {
	c.pause()
	c.arm(limit)
	c.resume()
}

// stop ends the watchdog.
func (c *clock) stop() {
	c.due.Store(0)
	if c.watch != nil {
		c.watch.Stop()
	}
}
