package command

import (
	"context"
	"sync/atomic"
)

// Late stands for a runtime towards the policy that is a part of it: the policy is made
// before there is a runtime, and asked afterwards. Before Set nothing is loaded.
type Late struct{ running atomic.Pointer[Running] }

// Set says which runtime it is.
func (l *Late) Set(r *Running) { l.running.Store(r) }

// Trusted is what a person allowed, for permission.Config.Trusted.
func (l *Late) Trusted(ctx context.Context, path string, before *string, content string) {
	if r := l.running.Load(); r != nil {
		r.Wrote(ctx, path, before, content)
	}
}

// Loads says which files are loaded, for permission.Config.Loads.
func (l *Late) Loads(path string) bool {
	r := l.running.Load()
	return r != nil && r.Loads(path)
}
