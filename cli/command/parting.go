package command

import (
	"context"
	"sync"
)

// Parting is what a person is told when a second signal ends the program at once.
// It is safe for concurrent use; what is said of a nil one is lost.
type Parting struct {
	mu   sync.Mutex
	text string
}

// Say sets the text: whole lines.
func (p *Parting) Say(text string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
}

// Text is what was said last.
func (p *Parting) Text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text
}

type partingKey struct{}

// WithParting gives the commands below ctx a parting.
func WithParting(ctx context.Context, p *Parting) context.Context {
	return context.WithValue(ctx, partingKey{}, p)
}

// PartingOf is the parting of ctx, or nil.
func PartingOf(ctx context.Context) *Parting {
	p, _ := ctx.Value(partingKey{}).(*Parting)
	return p
}
