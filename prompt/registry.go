package prompt

import (
	"context"
	"errors"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
)

// A Registry holds the sections, contexts and variables of one runtime.
type Registry struct {
	ctx *cordis.Context
}

// NewRegistry returns an empty registry whose event is dispatched from c.
func NewRegistry(c *cordis.Context) *Registry { return &Registry{ctx: c} }

var errSkeleton = errors.New("not there yet")

// Section adds a part to the system prompt of c's scope, as an effect of c's fiber
// with the label prompt.section("name").
func (r *Registry) Section(c *cordis.Context, s Section) (*cordis.Handle, error) {
	return nil, errSkeleton
}

// Context adds a part to the runtime context of c's scope, as an effect of c's
// fiber with the label prompt.context("name").
func (r *Registry) Context(c *cordis.Context, s Section) (*cordis.Handle, error) {
	return nil, errSkeleton
}

// Variable makes {{name}} stand for what fn gives, in c's scope, as an effect of
// c's fiber with the label prompt.variable("name").
func (r *Registry) Variable(c *cordis.Context, name string, fn func(ctx context.Context, v View) (string, error)) (*cordis.Handle, error) {
	return nil, errSkeleton
}

// System gives the system prompt for v. It fails where a part of the composition
// does or a listener of [Assemble], or when ctx ends.
func (r *Registry) System(ctx context.Context, v View) (string, error) { return "", nil }

// Contexts gives the runtime context for v, "" if there is none; [Snapshot] makes
// a message of it. It fails as System does.
func (r *Registry) Contexts(ctx context.Context, v View) (string, error) { return "", nil }

// Snapshot gives the text of the message that tells a model the runtime context,
// as Contexts gave it; "" says that there is none any more. The source of the
// message is {kind: plugin, name: "prompt"}.
func Snapshot(contexts string) string { return "" }

func builtIn(*Registry, *cordis.Context, Config) error { return nil }

type plugins struct {
	r *Registry
	c *cordis.Context
}

// Section implements ForPlugins.
func (p *plugins) Section(s Section) (service.Dispose, error) { return nil, errSkeleton }

// Context implements ForPlugins.
func (p *plugins) Context(s Section) (service.Dispose, error) { return nil, errSkeleton }

// Variable implements ForPlugins.
func (p *plugins) Variable(name string, value func(ctx context.Context, view View) (string, error)) (service.Dispose, error) {
	return nil, errSkeleton
}
