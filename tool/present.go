package tool

import (
	"context"

	"github.com/dsh-go/dsh/lossless"
)

// ExecutionMode says whether a call may overlap with others. It is Exclusive
// unless the tool says true for valid arguments.
func (r *Registry) ExecutionMode(ctx context.Context, call Call) Mode {
	e := r.find(call.Name, call.Scope)
	if e == nil || e.def.ConcurrencySafe == nil {
		return Exclusive
	}
	args, ok := softArguments(e, call.Arguments)
	if !ok {
		return Exclusive
	}
	mode := Exclusive
	r.soft(ctx, e, call.Scope, "isConcurrencySafe", func(ctx context.Context) {
		if e.def.ConcurrencySafe(ctx, args) {
			mode = Parallel
		}
	})
	return mode
}

// PresentCall returns the card of a call: the tool's own, or the generic one
// where the tool is unknown or has none to show.
func (r *Registry) PresentCall(ctx context.Context, name string, s *Scope, args lossless.Text) *Card {
	e := r.find(name, s)
	if e != nil && e.def.PresentCall != nil {
		if valid, ok := softArguments(e, args); ok {
			var card *Card
			r.soft(ctx, e, s, "presentCall", func(ctx context.Context) {
				if c, err := e.def.PresentCall(ctx, valid); err == nil {
					card = c
				}
			})
			if usable(card, true) {
				return card
			}
		}
	}
	card := &GenericCard{Title: name, Kind: KindOther}
	if e != nil {
		card.Title, card.Kind = e.view.Title, e.view.Kind
	}
	if v, err := parseArguments(args); err == nil {
		card.RawInput = v.Encode()
	}
	return &Card{Generic: card}
}

// PresentResult returns the card of a result: the tool's own, or a generic one
// with the result's content.
func (r *Registry) PresentResult(ctx context.Context, name string, s *Scope, args lossless.Text, result *Result) *Card {
	e := r.find(name, s)
	if e != nil && e.def.PresentResult != nil && result != nil {
		if valid, ok := softArguments(e, args); ok {
			var card *Card
			r.soft(ctx, e, s, "presentResult", func(ctx context.Context) {
				if c, err := e.def.PresentResult(ctx, valid, result); err == nil {
					card = c
				}
			})
			if usable(card, false) {
				return card
			}
		}
	}
	card := &GenericCard{}
	if e != nil {
		card.Kind = e.view.Kind
	}
	if result != nil {
		card.Content = result.Content
	}
	return &Card{Generic: card}
}

// usable reports whether a card may be shown for a call or for a result.
func usable(c *Card, call bool) bool {
	if c == nil || c.Validate() != nil {
		return false
	}
	if !call {
		return true
	}
	switch {
	case c.Generic != nil:
		return c.Generic.Title != ""
	case c.Terminal != nil:
		return c.Terminal.Title != ""
	case c.Diff != nil:
		return c.Diff.Title != ""
	}
	return false
}

// softArguments returns the arguments as the tool would see them, if they are valid.
func softArguments(e *entry, args lossless.Text) (lossless.Text, bool) {
	v, err := parseArguments(args)
	if err != nil {
		return nil, false
	}
	text, err := validArguments(e, v)
	return text, err == nil
}

// soft runs a function of a tool whose failure has no consequence but its
// absence: not at all when the owner takes no calls, and with panics logged.
func (r *Registry) soft(ctx context.Context, e *entry, s *Scope, what string, fn func(context.Context)) {
	ctx, done, err := e.fiber.Enter(ctx, e.label(what))
	if err != nil {
		return
	}
	defer done()
	r.contain(e.label(what), func() { fn(e.within(ctx, s)) })
}
