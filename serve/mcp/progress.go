package mcp

import (
	"context"
	"math"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dsh-go/dsh/tool"
)

// progressEvery is the least time between two progress notifications of a call.
const progressEvery = 50 * time.Millisecond

// textStep is what a report without a count of its own adds.
const textStep = 0.001

// progress sends what a call reports to the client that asked for it. Only the
// newest report waits to be sent; older ones are dropped. Its goroutine starts
// with the first report and ends within close.
type progress struct {
	ctx   context.Context
	token any
	send  func(context.Context, *sdk.ProgressNotificationParams) error

	mu      sync.Mutex
	pending *tool.Progress
	started bool
	last    float64
	counted bool // last is a number that was sent

	wake chan struct{} // holds one
	done chan struct{} // closed by close
	gone chan struct{} // closed when the goroutine has ended
}

func newProgress(ctx context.Context, token any, send func(context.Context, *sdk.ProgressNotificationParams) error) *progress {
	return &progress{
		ctx:   ctx,
		token: token,
		send:  send,
		wake:  make(chan struct{}, 1),
		done:  make(chan struct{}),
		gone:  make(chan struct{}),
	}
}

// report takes a report of the call; it never waits.
func (p *progress) report(r tool.Progress) {
	p.mu.Lock()
	p.pending = &r
	if !p.started {
		p.started = true
		go p.run()
	}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// close sends the last report, if one waits, and returns when nothing more will
// be sent. No report may follow.
func (p *progress) close() {
	p.mu.Lock()
	started := p.started
	p.mu.Unlock()
	close(p.done)
	if started {
		<-p.gone
	}
}

func (p *progress) run() {
	defer close(p.gone)
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		select {
		case <-p.wake:
			p.flush()
		case <-p.done:
			p.flush()
			return
		}
		pause.Reset(progressEvery)
		select {
		case <-pause.C:
		case <-p.done:
			p.flush()
			return
		}
	}
}

func (p *progress) flush() {
	p.mu.Lock()
	r := p.pending
	p.pending = nil
	p.mu.Unlock()
	if r == nil || p.ctx.Err() != nil {
		return
	}
	if params := p.params(*r); params != nil {
		// A notification that cannot be written is lost; the result will tell.
		_ = p.send(p.ctx, params)
	}
}

// params numbers a report: the protocol wants each number greater than the one
// before. What counts itself keeps its numbers, a count that does not grow is
// dropped, and text alone moves the number as little as a person would notice.
func (p *progress) params(r tool.Progress) *sdk.ProgressNotificationParams {
	value := max(p.last+textStep, math.Nextafter(p.last, math.Inf(1)))
	if r.Done != nil {
		value = *r.Done
		if math.IsNaN(value) || math.IsInf(value, 0) || p.counted && value <= p.last {
			return nil
		}
	}
	p.counted = true
	p.last = value
	params := &sdk.ProgressNotificationParams{ProgressToken: p.token, Message: r.Text, Progress: value}
	if r.Total != nil && !math.IsNaN(*r.Total) && !math.IsInf(*r.Total, 0) {
		params.Total = *r.Total
	}
	return params
}
