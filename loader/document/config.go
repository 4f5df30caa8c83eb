package document

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// values makes JSON of nodes, and puts in the variables that they name.
type values struct {
	env    func(string) (string, bool) // nil: variables stay as they are written
	secret func(string) bool
	budget *int // bytes that variables may still have
	faults Faults
}

func (v *values) fault(n *yaml.Node, offset int, format string, args ...any) {
	v.faults = append(v.faults, faultAt(n.In, offset, fmt.Sprintf(format, args...)))
}

// of returns a node's value, false where something is wrong with it.
func (v *values) of(n *yaml.Node) (lossless.Value, bool) {
	switch n.Kind {
	case yaml.Bool:
		return lossless.Boolean(n.Text == "true"), true
	case yaml.Number:
		return v.number(n, n.Text)
	case yaml.String:
		return v.text(n)
	case yaml.List:
		ok, items := true, make([]lossless.Value, len(n.Items))
		for i, item := range n.Items {
			var fine bool
			items[i], fine = v.of(item)
			ok = ok && fine
		}
		return lossless.Arr(items...), ok
	case yaml.Map:
		ok, members := true, make([]lossless.Member, len(n.Items))
		for i, item := range n.Items {
			value, fine := v.of(item)
			members[i] = lossless.M(n.Keys[i].Text, value)
			ok = ok && fine
		}
		return lossless.Obj(members...), ok
	}
	return lossless.Value{}, true
}

func (v *values) number(n *yaml.Node, literal string) (lossless.Value, bool) {
	value, err := lossless.Parse([]byte(literal))
	if err != nil {
		v.fault(n, n.Start, "the number is none of JSON: %v", err)
	}
	return value, err == nil
}

var (
	variable = regexp.MustCompile(`^env:([A-Za-z_][A-Za-z0-9_]*)(:-(.*))?$`)
	alone    = regexp.MustCompile(`^\$\{[^}]*\}$`)
)

// text puts variables into a text.
func (v *values) text(n *yaml.Node) (lossless.Value, bool) {
	if v.env == nil || !strings.Contains(n.Text, "${") {
		return lossless.Str(n.Text), true
	}
	var out strings.Builder
	rest, ok, from := n.Text, true, n.Start
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			break
		}
		at := from
		if j := strings.Index(n.In.Text[from:n.End], "${"); j >= 0 {
			at = from + j
			from = at + 2
		}
		if i > 0 && rest[i-1] == '$' {
			out.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			v.fault(n, at, `"${" without its "}"; a literal "${" is written as "$${"`)
			return lossless.Value{}, false
		}
		out.WriteString(rest[:i])
		value, fine := v.variable(n, at, rest[i+2:i+end])
		ok = ok && fine
		out.WriteString(value)
		rest = rest[i+end+1:]
	}
	out.WriteString(rest)
	if !ok {
		return lossless.Value{}, false
	}
	if n.Style == yaml.Plain && alone.MatchString(n.Text) {
		return v.scalar(n, out.String())
	}
	return lossless.Str(out.String()), true
}

// scalar reads what a variable alone stands for, as YAML would.
func (v *values) scalar(n *yaml.Node, text string) (lossless.Value, bool) {
	kind, value, problem := yaml.Resolve(strings.TrimSpace(text))
	switch {
	case problem != "":
		v.fault(n, n.Start, "the variable's value is %s; put the ${…} in quotes if it is text", problem)
		return lossless.Value{}, false
	case kind == yaml.Null:
		return lossless.Value{}, true
	case kind == yaml.Bool:
		return lossless.Boolean(value == "true"), true
	case kind == yaml.Number:
		return v.number(n, value)
	}
	return lossless.Str(text), true
}

// variable returns the value of what stands between ${ and }.
func (v *values) variable(n *yaml.Node, at int, inside string) (string, bool) {
	m := variable.FindStringSubmatch(inside)
	if m == nil {
		v.fault(n, at, `"${%s}" is not known; a variable is ${env:NAME} or ${env:NAME:-default}, and a literal "${" is written as "$${"`, plain.Line(inside, limits.Name))
		return "", false
	}
	name, hasDefault := m[1], m[2] != ""
	if owner, ok := n.In.Owner.(*Layer); ok && owner.Kind == Project && v.secret(name) {
		v.fault(n, at, "a project may not read %s: it looks like a credential; set the value in your own cordis.yml", plain.Line(name, limits.Name))
		return "", false
	}
	value, set := v.env(name)
	switch {
	case hasDefault && value == "":
		value = m[3]
	case !set:
		v.fault(n, at, "the variable %s is not set; set it, or give a default: ${env:%s:-default}", plain.Line(name, limits.Name), plain.Line(name, limits.Name))
		return "", false
	case !utf8.ValidString(value):
		v.fault(n, at, "the variable %s is not UTF-8", plain.Line(name, limits.Name))
		return "", false
	}
	if *v.budget -= len(value); *v.budget < 0 {
		v.fault(n, at, "the variables of a composition have more than %d bytes together", limits.DocumentBytes)
		return "", false
	}
	return value, true
}

// credentials are names, or beginnings of them before a *, beside those that end as
// credentialEnds say.
var (
	credentials = []string{
		"GOOGLE_APPLICATION_CREDENTIALS", "OPENAI_KEY", "AZURE_OPENAI_KEY", "AWS_*", "GITHUB_PAT",
		"PGPASSWORD", "MYSQL_PWD", "REDISCLI_AUTH", "DOCKER_AUTH_CONFIG", "DSH_*",
	}
	credentialEnds = []string{"_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_KEY", "_CREDENTIALS", "_AUTH", "_PAT"}
)

// Credential says whether a variable's name looks like that of a credential, by the
// rule that keeps credentials from commands (service/bash) or a stricter one.
func Credential(name string) bool {
	name = strings.ToUpper(name)
	for _, end := range credentialEnds {
		if strings.HasSuffix(name, end) || name == end[1:] {
			return true
		}
	}
	return slices.ContainsFunc(credentials, func(pattern string) bool {
		start, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, start)
	})
}
