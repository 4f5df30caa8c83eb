package tool

import "context"

// An Actor is who acts when a service or a listener is called. Only the program
// itself says it: the pipeline for what a tool does, and the bridge of mounts for
// what a temporary plugin asks of a service. Nothing that a model or a plugin
// writes is read for it.
type Actor struct {
	// Scope is where the act belongs; nil is the global layer.
	Scope *Scope
	// Mount is the temporary plugin that acts; nil for the composition.
	Mount *Mount
	// Exec is the call within which the act happens; nil for none, such as a timer's.
	Exec *Exec
}

type actorKey struct{}

// WithActor returns a context in which a acts.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who acts in ctx; the zero Actor is the program itself, outside
// of every call and scope.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// within returns a context in which the tool e acts: its mount, if it has one, in
// the scope s. The call stays who it was.
func (e *entry) within(ctx context.Context, s *Scope) context.Context {
	return WithActor(ctx, Actor{Scope: s, Mount: e.view.Mount, Exec: ActorOf(ctx).Exec})
}
