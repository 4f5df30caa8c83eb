package cordis

import (
	"context"
	"fmt"
)

// Context is a view of the runtime: the fiber that owns what is registered
// through it, and the realms, interceptions and plain values that were laid on
// it. Contexts are immutable and cheap; deriving one makes no fiber, and there
// is nothing to dispose on it. All methods are safe for concurrent use.
type Context struct {
	fiber      *Fiber
	isolations *isolation
	layers     *layer
	values     *value
}

// isolation, layer and value are chains, nearest first.
type isolation struct {
	name  string
	realm *Realm
	up    *isolation
}

type layer struct {
	name   string
	config any
	up     *layer
}

type value struct {
	key, value any
	up         *value
}

// Realm separates services of one name: each realm can hold one. The root
// context and everything that is not isolated use the nil realm.
type Realm struct{ label string }

// NewRealm makes a realm. The label is for people; two realms of one label are
// different.
func NewRealm(label string) *Realm { return &Realm{label} }

// String gives the label; the nil realm is "root", an unnamed one "private".
func (r *Realm) String() string {
	switch {
	case r == nil:
		return "root"
	case r.label == "":
		return "private"
	}
	return r.label
}

// Fiber gives the fiber that owns c.
func (c *Context) Fiber() *Fiber { return c.fiber }

// Root gives the root context of c's runtime.
func (c *Context) Root() *Context { return &c.fiber.rt.root.ctx }

// Runtime gives the world that c belongs to.
func (c *Context) Runtime() *Runtime { return c.fiber.rt }

// String is "Context <name of the fiber>".
func (c *Context) String() string { return fmt.Sprintf("Context <%s>", c.fiber.name) }

// Context gives a context that is cancelled when the fiber's current run starts
// to unload, or is told to: its configuration changed, a service that it injects
// went, it is disposed. It carries the run as its chain: waiting with it, in the
// body, for what waits for the body is refused with ErrSelf. A fiber that does
// not run gives a cancelled context.
func (c *Context) Context() context.Context {
	if r := c.fiber.run.Load(); r != nil {
		return r.context()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return newFrame(ctx, c.fiber, "body")
}

// WithValue derives a context on which key has the value. What is mounted on it
// inherits it. Keys are compared with ==, as in the context package.
func (c *Context) WithValue(key, val any) *Context {
	d := *c
	d.values = &value{key, val, c.values}
	return &d
}

// Value gives the nearest value of key, or nil.
func (c *Context) Value(key any) any {
	for v := c.values; v != nil; v = v.up {
		if v.key == key {
			return v.value
		}
	}
	return nil
}

// Isolate derives a context on which the service name is looked up and provided
// in realm; nil stands for a fresh private one. Other names, and c, are not
// affected. It is no scope of a lifetime: the fiber stays the same.
func (c *Context) Isolate(name string, realm *Realm) *Context {
	if realm == nil {
		realm = &Realm{}
	}
	d := *c
	d.isolations = &isolation{name, realm, c.isolations}
	return &d
}

// realm gives the realm in which c sees the service name.
func (c *Context) realm(name string) *Realm {
	for i := c.isolations; i != nil; i = i.up {
		if i.name == name {
			return i.realm
		}
	}
	return nil
}

// Intercept derives a context that carries config for the service name. The
// service decides what it means, see Interceptions.
func (c *Context) Intercept(name string, config any) *Context {
	d := *c
	d.layers = &layer{name, config, c.layers}
	return &d
}

// Interceptions gives the configurations that are laid on c for the service
// name, root-most first. The nearest is what the plugin's own Inject says.
func (c *Context) Interceptions(name string) []any {
	var out []any
	for l := c.layers; l != nil; l = l.up {
		if l.name == name {
			out = append(out, l.config)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}
