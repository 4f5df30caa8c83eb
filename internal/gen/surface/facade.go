package surface

import (
	"go/types"
	"regexp"
	"strings"

	"github.com/dsh-go/dsh/selfmod/catalog"
)

// parsed is a signature of a //dsh:ts line.
type parsed struct {
	name    string
	generic bool
	params  string
	result  string
}

var signatureHead = regexp.MustCompile(`^([a-z]\w*)(<[^(]*>)?\(`)

// parseSignature takes name<T>(params): result apart.
func parseSignature(line string) (parsed, bool) {
	head := signatureHead.FindStringSubmatch(line)
	if head == nil {
		return parsed{}, false
	}
	rest := line[len(head[0]):]
	depth := 1
	for i, c := range rest {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			result, ok := strings.CutPrefix(rest[i+1:], ": ")
			return parsed{head[1], head[2] != "", rest[:i], result}, ok
		}
	}
	return parsed{}, false
}

// overloads takes the signatures that a façade's method writes itself.
func (p *projection) overloads(out *catalog.Method, m *types.Func, lines []string, what string) {
	out.Go = ""
	if !p.facade {
		p.fault(m.Pos(), "method %s: //dsh:ts is for services without a bind function; the bridge calls what Go says", what)
	}
	for _, line := range lines {
		sig, ok := parseSignature(line)
		if !ok || sig.name != out.Name {
			p.fault(m.Pos(), "method %s: //dsh:ts is a signature, such as %s(…): void", what, out.Name)
			continue
		}
		for _, name := range paramNames(sig.params) {
			if !mentions(p.doc.text, name) {
				p.fault(m.Pos(), "parameter %s of %s: the comment of the method does not mention it", name, what)
			}
		}
		out.Result = sig.result
		if inner, ok := strings.CutPrefix(sig.result, "Promise<"); ok {
			out.Kind, out.Result = catalog.KindAsync, strings.TrimSuffix(inner, ">")
		}
		if !sig.generic {
			p.mentioned(line, p.home, place{m.Pos(), "method " + what})
		}
	}
	out.Signature = strings.Join(lines, "\n")
}

// paramNames are the names in a list of parameters, without those of callbacks.
func paramNames(text string) []string {
	var names []string
	depth, start := 0, 0
	end := func(i int) {
		name, _, _ := strings.Cut(text[start:i], ":")
		if name = strings.Trim(name, " ?."); name != "" {
			names = append(names, name)
		}
		start = i + 1
	}
	for i, c := range text {
		switch c {
		case '(', '<', '{', '[':
			depth++
		case ')', '}', ']':
			depth--
		case '>':
			if i > 0 && text[i-1] != '=' {
				depth--
			}
		case ',':
			if depth == 0 {
				end(i)
			}
		}
	}
	end(len(text))
	return names
}
