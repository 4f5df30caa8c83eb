package prompt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// part is one registered section, context or variable.
type part struct {
	kind  kind
	name  string
	order float64
	text  template
	fn    func(context.Context, View) (string, error) // nil: text
	scope *tool.Scope
	ctx   *cordis.Context
	mount *tool.Mount // nil: the composition
	label string

	warned atomic.Bool // that it is left out
	slow   atomic.Bool // it ran out of its time, and is not asked again
}

func (p *part) key() key { return key{p.kind, p.name} }

// owner names the plugin for people.
func (p *part) owner() string {
	if p.mount != nil {
		return p.mount.Who()
	}
	return fmt.Sprintf("the composition (%s)", plain.Name(p.ctx.Fiber().Name()))
}

// compareParts orders parts as a text has them.
func compareParts(a, b *part) int {
	number := func(p *part) int {
		if p.mount == nil {
			return -1
		}
		return p.mount.Number
	}
	return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(number(a), number(b)), cmp.Compare(a.name, b.name))
}

// failure is what went wrong with a part.
type failure struct {
	part *part
	err  error
}

func (f *failure) Error() string {
	return fmt.Sprintf("%s %q of %s: %v", f.part.kind, f.part.name, f.part.owner(), f.err)
}

func (f *failure) Unwrap() error { return f.err }

// errGone says that a part goes away at this moment.
var errGone = errors.New("its plugin ends")

// errSlow says that a part is not asked again; that was told when it was found.
var errSlow = errors.New("it was too slow before")

// assembly is the making of one text.
type assembly struct {
	ctx    context.Context
	view   View
	parts  map[key]*part
	values map[string]outcome // of variables
	left   time.Duration      // for functions of temporary plugins
}

type outcome struct {
	text string
	err  error
}

// rendered is a part with its text.
type rendered struct {
	*part
	text string
}

// System gives the system prompt for v. It fails where a part of the composition
// does or a listener of [Assemble], when the composition's parts have more than
// limits.PromptAll bytes, or when ctx ends.
func (r *Registry) System(ctx context.Context, v View) (string, error) {
	all, err := r.render(ctx, v, kindSection)
	if err != nil {
		return "", fmt.Errorf("make the system prompt: %w", err)
	}
	d := Draft{View: v.clone(), Sections: make([]Part, len(all))}
	for n, p := range all {
		d.Sections[n] = Part{Name: p.name, Text: p.text}
	}
	reached := cordis.WithFilter(func(c *cordis.Context) bool { return v.Scope.Within(tool.ScopeOf(c)) })
	text, err := Assemble.Run(ctx, r.ctx, d, func(_ context.Context, d Draft) (string, error) { return d.Text(), nil }, reached)
	if err == nil {
		err = d.Accepts(text)
	}
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	if err != nil {
		return "", fmt.Errorf("make the system prompt: %w", err)
	}
	return text, nil
}

// Contexts gives the runtime context for v, "" if there is none; [Snapshot] makes
// a message of it. It fails as System does.
func (r *Registry) Contexts(ctx context.Context, v View) (string, error) {
	all, err := r.render(ctx, v, kindContext)
	if err != nil {
		return "", fmt.Errorf("make the runtime context: %w", err)
	}
	texts := make([]string, len(all))
	for n, p := range all {
		texts[n] = p.text
	}
	return strings.Join(texts, between), nil
}

// clone gives a view that its reader may change.
func (v View) clone() View {
	values := make(map[string]string, len(v.Values))
	maps.Copy(values, v.Values)
	return View{v.Scope, values}
}

// between is what stands between two parts.
const between = "\n\n"

// Text joins the sections, as the system prompt does where no listener makes
// another one of them.
func (d Draft) Text() string {
	texts := make([]string, len(d.Sections))
	for n, s := range d.Sections {
		texts[n] = s.Text
	}
	return strings.Join(texts, between)
}

// Accepts says what is wrong with a text that a listener of [Assemble] returned.
func (d Draft) Accepts(result any) error {
	text, ok := result.(string)
	switch {
	case !ok:
		return fmt.Errorf("prompt/assemble gave a %T: a system prompt is a text", result)
	case len(text) > limits.PromptAll:
		return fmt.Errorf("prompt/assemble gave %d bytes: a system prompt has at most %d", len(text), limits.PromptAll)
	case !utf8.ValidString(text):
		return errors.New("prompt/assemble gave a text that is not valid UTF-8")
	}
	return nil
}

// render gives the parts of one kind that have a text, in their order. The
// composition's come first into the room that there is.
func (r *Registry) render(ctx context.Context, v View, k kind) ([]rendered, error) {
	a := &assembly{ctx: ctx, view: v, parts: r.visible(v.Scope), values: map[string]outcome{}, left: limits.PromptParts}
	var parts []*part
	for at, p := range a.parts {
		if at.kind == k {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, compareParts)
	var out []rendered
	size := -len(between)
	for _, mounted := range []bool{false, true} {
		for _, p := range parts {
			if (p.mount != nil) != mounted {
				continue
			}
			text, err := a.text(p)
			if ended := ctx.Err(); ended != nil {
				return nil, ended
			}
			if err == nil && text != "" && size+len(between)+len(text) > limits.PromptAll {
				err = &failure{p, fmt.Errorf("%w: with it the text would have more than %d bytes", ErrLimit, limits.PromptAll)}
			}
			leave, err := leftOut(err)
			if err != nil {
				return nil, err
			}
			if leave {
				continue
			}
			p.warned.Store(false)
			if text == "" {
				continue
			}
			size += len(between) + len(text)
			out = append(out, rendered{p, text})
		}
	}
	slices.SortFunc(out, func(a, b rendered) int { return compareParts(a.part, b.part) })
	return out, nil
}

// leftOut tells whether a part is left out because of err, and warns of it once;
// an error that it returns fails the text.
func leftOut(err error) (bool, error) {
	switch {
	case err == nil:
		return false, nil
	case errors.Is(err, errGone), errors.Is(err, errSlow):
		return true, nil
	}
	p := blamed(err)
	if p == nil {
		return true, err
	}
	if p.warned.CompareAndSwap(false, true) {
		service.Warn(p.ctx, fmt.Errorf("left out of the prompt: %w", err))
	}
	return true, nil
}

// blamed gives the part of a temporary plugin that err comes from, nil for none: a
// section of the composition may have failed over a variable of such a plugin.
func blamed(err error) *part {
	for f := new(failure); errors.As(err, &f); err = f.err {
		if f.part.mount != nil {
			return f.part
		}
	}
	return nil
}

// text gives what a part says now.
func (a *assembly) text(p *part) (string, error) {
	var text string
	var err error
	if p.fn != nil {
		text, err = a.call(p)
	} else {
		text, err = p.text.render(a.value)
	}
	if err != nil {
		return "", &failure{p, err}
	}
	text = strings.TrimLeft(strings.TrimRight(text, " \t\r\n"), "\r\n")
	return text, nil
}

// value gives the value of a variable.
func (a *assembly) value(name string) (string, error) {
	if v, ok := a.view.Values[name]; ok {
		return valued(name, v)
	}
	p := a.parts[key{kindVariable, name}]
	if p == nil {
		return "", fmt.Errorf("there is no variable {{%s}}; there are: %s", name, a.known())
	}
	o, ok := a.values[name]
	if !ok {
		o.text, o.err = a.call(p)
		if o.err == nil {
			o.text, o.err = valued(name, o.text)
		}
		if o.err != nil {
			o.err = &failure{p, o.err}
		} else {
			p.warned.Store(false)
		}
		a.values[name] = o
	}
	return o.text, o.err
}

func valued(name, value string) (string, error) {
	if value == "" {
		return "", fmt.Errorf("{{%s}} has no value now", name)
	}
	return value, nil
}

// known are the names of the variables, for messages.
func (a *assembly) known() string {
	names := slices.Collect(maps.Keys(a.view.Values))
	for k := range a.parts {
		if k.kind == kindVariable {
			names = append(names, k.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return plain.Cut(strings.Join(slices.Compact(names), ", "), limits.ErrorText)
}

// call asks the function of a part, one of a temporary plugin for as long as it has.
func (a *assembly) call(p *part) (string, error) {
	if p.slow.Load() {
		return "", errSlow
	}
	ctx, limit := a.ctx, min(limits.PromptPart, a.left)
	if p.mount != nil {
		if limit <= 0 {
			return "", fmt.Errorf("the functions of temporary plugins have taken %v already, which is all that they have in one text", limits.PromptParts)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	inner, done, err := p.ctx.Fiber().Enter(ctx, p.label)
	if err != nil {
		return "", errGone
	}
	defer done()
	began := time.Now()
	text, err := guarded(func() (string, error) { return p.fn(inner, a.view.clone()) })
	if p.mount != nil {
		a.left -= time.Since(began)
		if err != nil && ctx.Err() != nil && a.ctx.Err() == nil {
			err = fmt.Errorf("it gave no text within the %v that were left for it", limit.Round(time.Millisecond))
			if limit == limits.PromptPart {
				p.slow.Store(true)
				err = fmt.Errorf("it gave no text within %v, and is not asked again until its plugin registers it anew", limit)
			}
		}
	}
	if err == nil {
		err = checkText(text)
	}
	return text, err
}

// guarded makes an error of a panic.
func guarded(fn func() (string, error)) (text string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &cordis.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}
