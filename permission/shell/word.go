package shell

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Word is one word of a command, as the command gets it.
type Word struct {
	// Text is the word, without quotes, if it is Literal; else as it is written.
	Text string
	// Literal says that the word is exactly Text, whatever the variables, the files
	// and the input are.
	Literal bool
	// Single says that it is exactly one word, whatever it is.
	Single bool
	// Many says that any number of unknown words may stand here, as after xargs.
	Many bool
}

// known is a literal word.
func known(text string) Word { return Word{Text: text, Literal: true, Single: true} }

// wordOf reads a word.
func wordOf(w *syntax.Word) Word {
	if w == nil {
		return Word{}
	}
	var text strings.Builder
	r := wordReader{literal: true, single: true}
	for i, part := range w.Parts {
		r.part(&text, part, i == 0)
	}
	if r.brace && r.comma {
		r.literal, r.single = false, false
	}
	if r.literal {
		return known(text.String())
	}
	return Word{Text: written(w), Single: r.single}
}

// written is a word as it is written.
func written(w *syntax.Word) string {
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.SingleLine(true)).Print(&b, w); err != nil {
		return "…"
	}
	return b.String()
}

type wordReader struct {
	literal, single bool
	brace, comma    bool // of a brace expansion, which may go across parts
}

func (r *wordReader) part(text *strings.Builder, part syntax.WordPart, first bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		r.plain(text, p.Value, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			text.WriteString(p.Value)
			return
		}
		s, err := expand.Literal(&expand.Config{Env: expand.ListEnviron()}, &syntax.Word{Parts: []syntax.WordPart{p}})
		if err != nil || strings.ContainsRune(s, 0) {
			r.literal = false
			return
		}
		text.WriteString(s)
	case *syntax.DblQuoted:
		if p.Dollar { // translated by a catalog
			r.literal = false
		}
		r.quoted(text, p.Parts)
	case *syntax.ParamExp:
		// A number is one word.
		r.literal, r.single = false, r.single && p.Short && p.Param != nil && strings.Contains("?#$", p.Param.Value)
	default:
		r.literal, r.single = false, false
	}
}

// plain reads what stands outside of quotes.
func (r *wordReader) plain(text *strings.Builder, s string, first bool) {
	if first && strings.HasPrefix(s, "~") || strings.Contains(s, "=~") || strings.Contains(s, ":~") {
		r.literal = false
	}
	if s == "[" && first && text.Len() == 0 { // the command; of a pattern there is more
		text.WriteString(s)
		return
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			i++
			if i == len(s) { // at the end of all it is one
				r.literal = false
			} else if s[i] != '\n' {
				text.WriteByte(s[i])
			}
			continue
		case '*', '?', '[':
			r.literal, r.single = false, false
		case '{':
			r.brace = true
		case ',':
			r.comma = true
		case '.':
			r.comma = r.comma || i+1 < len(s) && s[i+1] == '.'
		case '$', '`': // a $ that begins nothing; do not rely on it
			r.literal = false
		}
		text.WriteByte(s[i])
	}
}

// quoted reads what stands in double quotes.
func (r *wordReader) quoted(text *strings.Builder, parts []syntax.WordPart) {
	for _, part := range parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			r.literal = false
			if p, isParam := part.(*syntax.ParamExp); isParam && (p.Param == nil || p.Param.Value == "@" || p.Index != nil || p.Excl) {
				r.single = false
			}
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\\n", lit.Value[i+1]) >= 0 {
				i++
				if c = lit.Value[i]; c == '\n' {
					continue
				}
			}
			text.WriteByte(c)
		}
	}
}
