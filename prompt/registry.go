package prompt

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// A Registry holds the sections, contexts and variables of one runtime.
type Registry struct {
	ctx *cordis.Context

	mu     sync.Mutex
	layers map[*tool.Scope]map[key][]*part // oldest first, one of them seen; the global layer has the nil scope
	owned  map[*cordis.Fiber]int           // how many parts each has
}

// key is what a layer knows a part by.
type key struct {
	kind kind
	name string
}

// kind is what a part is, as messages say it.
type kind string

const (
	kindSection  kind = "section"
	kindContext  kind = "context"
	kindVariable kind = "variable"
)

// NewRegistry returns an empty registry whose event is dispatched from c.
func NewRegistry(c *cordis.Context) *Registry {
	return &Registry{ctx: c, layers: map[*tool.Scope]map[key][]*part{}, owned: map[*cordis.Fiber]int{}}
}

// Section adds a part to the system prompt of c's scope, as an effect of c's fiber
// with the label prompt.section("name"). The error is ErrInvalid, ErrDuplicate or
// ErrLimit (limits.PromptOwned), or that the fiber takes no effects.
func (r *Registry) Section(c *cordis.Context, s Section) (*cordis.Handle, error) {
	return r.add(c, kindSection, s)
}

// Context adds a part to the runtime context of c's scope, as an effect of c's
// fiber with the label prompt.context("name"). Its errors are those of Section.
func (r *Registry) Context(c *cordis.Context, s Section) (*cordis.Handle, error) {
	return r.add(c, kindContext, s)
}

// Variable makes {{name}} stand for what fn gives, in c's scope, as an effect of
// c's fiber with the label prompt.variable("name"). Its errors are those of Section.
func (r *Registry) Variable(c *cordis.Context, name string, fn func(ctx context.Context, v View) (string, error)) (*cordis.Handle, error) {
	return r.add(c, kindVariable, Section{Name: name, Func: fn})
}

func (r *Registry) add(c *cordis.Context, k kind, s Section) (*cordis.Handle, error) {
	p, err := newPart(c, k, s)
	if err != nil {
		return nil, fmt.Errorf("add %s %q to the prompt: %w: %w", k, plain.Name(s.Name), ErrInvalid, err)
	}
	return c.Effect(p.label, func(set *cordis.Setup) error {
		r.take(p)
		if err := r.put(p); err != nil {
			return fmt.Errorf("add %s %q to the prompt: %w", k, p.name, err)
		}
		set.Collect(func(context.Context) error {
			r.drop(p)
			return nil
		})
		return nil
	})
}

func newPart(c *cordis.Context, k kind, s Section) (*part, error) {
	p := &part{kind: k, name: s.Name, order: s.Order, fn: s.Func, scope: tool.ScopeOf(c), ctx: c}
	if m, ok := tool.MountOf(c); ok {
		p.mount = &m
	}
	p.label = fmt.Sprintf("prompt.%s(%q)", k, s.Name)
	switch {
	case k == kindVariable && !variableName(s.Name):
		return nil, fmt.Errorf("a variable's name is of the form [a-z][a-z0-9_]* and has at most %d characters", limits.Name)
	case s.Name == "" || !utf8.ValidString(s.Name) || plain.Name(s.Name) != s.Name:
		return nil, fmt.Errorf("a name has 1 to %d characters that can be printed", limits.Name)
	case k == kindVariable && s.Func == nil:
		return nil, fmt.Errorf("a variable needs a function that gives its value")
	case math.IsNaN(s.Order) || math.IsInf(s.Order, 0):
		return nil, fmt.Errorf("its order is %v: an order is a finite number", s.Order)
	case s.Func != nil && s.Text != "":
		return nil, fmt.Errorf("it has a text and a function: give one of them")
	case s.Func != nil:
		return p, nil
	}
	if err := checkText(s.Text); err != nil {
		return nil, err
	}
	var err error
	p.text, err = parseTemplate(s.Text)
	return p, err
}

// checkText says what is wrong with the text of a part.
func checkText(text string) error {
	switch {
	case len(text) > limits.PromptText:
		return tooLong(len(text))
	case !utf8.ValidString(text):
		return fmt.Errorf("its text is not valid UTF-8")
	}
	return nil
}

// take asks the stage of a part's fiber for the names that are in its way.
func (r *Registry) take(p *part) {
	stage := cordis.StageOf(p.ctx)
	if stage == nil {
		return
	}
	r.mu.Lock()
	others := r.namesakes(p)
	r.mu.Unlock()
	for _, other := range others {
		stage.Takes(other.ctx.Fiber())
	}
}

// namesakes gives the parts of p's name where p must not find one: in its scope, for
// a mount in the whole chain. The caller holds mu.
func (r *Registry) namesakes(p *part) (out []*part) {
	for s := p.scope; ; s = s.Parent() {
		out = append(out, r.layers[s][p.key()]...)
		if s == nil || p.mount == nil {
			return out
		}
	}
}

// put publishes a part unless its name is taken.
func (r *Registry) put(p *part) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owned[p.ctx.Fiber()] >= limits.PromptOwned {
		return fmt.Errorf("%w: %s has %d sections, contexts and variables, the most that a plugin may have", ErrLimit, p.owner(), limits.PromptOwned)
	}
	for _, other := range r.namesakes(p) {
		if p.ctx.Clashes(other.ctx.Fiber()) {
			return fmt.Errorf("%w: it belongs to %s, in the scope %q; choose another name, or take that one away first",
				ErrDuplicate, other.owner(), plain.Name(other.scope.Name()))
		}
	}
	if r.layers[p.scope] == nil {
		r.layers[p.scope] = map[key][]*part{}
	}
	r.layers[p.scope][p.key()] = append(r.layers[p.scope][p.key()], p)
	r.owned[p.ctx.Fiber()]++
	return nil
}

func (r *Registry) drop(p *part) {
	r.mu.Lock()
	defer r.mu.Unlock()
	layer := r.layers[p.scope]
	layer[p.key()] = slices.DeleteFunc(layer[p.key()], func(other *part) bool { return other == p })
	if len(layer[p.key()]) == 0 {
		delete(layer, p.key())
	}
	if len(r.layers[p.scope]) == 0 {
		delete(r.layers, p.scope)
	}
	f := p.ctx.Fiber()
	if r.owned[f]--; r.owned[f] == 0 {
		delete(r.owned, f)
	}
}

// visible gives the parts that a scope sees, the nearest of each name, by key.
func (r *Registry) visible(s *tool.Scope) map[key]*part {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[key]*part{}
	for ; ; s = s.Parent() {
		for k, parts := range r.layers[s] {
			for _, p := range slices.Backward(parts) { // at a commit the new one is shown first
				if seen[k] == nil && !p.ctx.Fiber().Hidden() {
					seen[k] = p
				}
			}
		}
		if s == nil {
			return seen
		}
	}
}

// Snapshot gives the text of the message that tells a model the runtime context,
// as Contexts gave it; "" says that there is none any more. The source of the
// message is {kind: plugin, name: "prompt"}.
func Snapshot(contexts string) string {
	if contexts == "" {
		return strings.TrimSpace(noSnapshotText)
	}
	return strings.TrimSpace(snapshotText) + "\n\n" + contexts
}
