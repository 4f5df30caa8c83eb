package surface

import (
	"go/types"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/selfmod/catalog"
)

// event describes one event.
func (r *reader) event(e foundEvent) catalog.Event {
	out := catalog.Event{Name: e.name, Mode: e.mode}
	at := place{e.pos, "event " + e.name}
	out.Doc = capital(r.docs.prose(e.varName, e.doc, nil))
	out.Summary = summary(out.Doc)
	if out.Doc == "" {
		r.fault(e.pos, "event %s has no comment", e.name)
	}
	args := r.arguments(e.payload, at)
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "next:") }) {
		r.fault(e.pos, "event %s: an argument named next contradicts the mode: only what the mode waterfall adds is called so", e.name)
	}
	answer := "void"
	switch {
	case e.mode == "waterfall":
		answer = r.answer(e, at)
		args = append(args, "next: () => Promise<"+answer+">")
		answer += " | Promise<" + answer + ">"
	case e.result != nil:
		answer = r.answer(e, at)
		answer += " | undefined | Promise<" + answer + " | undefined>"
	}
	out.Signature = "'" + e.name + "'(" + strings.Join(args, ", ") + "): " + answer
	return out
}

// answer is what a listener returns in a mode that has answers.
func (r *reader) answer(e foundEvent, at place) string {
	if s, ok := e.result.Underlying().(*types.Struct); ok && s.NumFields() == 0 {
		r.fault(e.pos, "event %s: the mode %s contradicts its signature: its result %s says nothing; emit and parallel have no answer", e.name, e.mode, short(e.result))
		return "void"
	}
	return r.ts(e.result, at)
}

// arguments are what a listener gets of a payload.
func (r *reader) arguments(t types.Type, at place) []string {
	named, ok := types.Unalias(t).(*types.Named)
	if ok {
		if _, split := r.docs.of(named.Obj()).directives["args"]; split {
			s, ok := named.Underlying().(*types.Struct)
			if !ok {
				r.fault(named.Obj().Pos(), "type %s: //dsh:args is for structs", short(named))
				return nil
			}
			var out []string
			for f := range fields(s) {
				out = append(out, f.name+": "+r.ts(f.v.Type(), place{f.v.Pos(), at.what}))
			}
			return out
		}
	}
	if sig, ok := t.Underlying().(*types.Signature); ok {
		r.fault(at.pos, "%s: the mode contradicts the signature: its payload %s is a function, and a listener answers by returning", at.what, short(sig))
		return nil
	}
	return []string{lower(baseName(t)) + ": " + r.ts(t, at)}
}
