package permission

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// A Rule names acts that are allowed or denied without a question. It is made by
// [ParseRule]; the zero Rule names none.
type Rule struct {
	text, name, arg string
	words           []string // of bash
}

// The names of rules, and which of them take something in parentheses.
const (
	ruleBash   = "bash"
	ruleEdit   = "edit"
	ruleRead   = "read"
	ruleFetch  = "fetch"
	ruleSearch = "search"
	ruleMount  = "mount"
	ruleTool   = "tool"
)

const ruleForms = `rules are bash, bash(git status), bash(npm run *), edit, edit(src/**), read(secrets/**), fetch, fetch(https://go.dev/*), search, mount, tool(name)`

// ParseRule reads a rule:
//
//	bash                       every command line
//	bash(git status)           this very command, in whatever line it stands
//	bash(npm run *)            it with any further arguments, or none; * within a word stands for any text
//	bash(=git log -3 | head)   this very line
//	edit, edit(src/**)         writing, editing, removing and making; paths are relative to the roots, or absolute, or begin with ~/
//	read(secrets/**)           reading; only good for denying
//	fetch, fetch(https://go.dev/*), fetch(*.go.dev)
//	search                     searching the web
//	mount                      cordis_mount
//	tool(name)                 a tool by its name, where * stands for any text; only calls of mounted tools need to be allowed
//
// The error says what is wrong and which forms there are.
func ParseRule(s string) (Rule, error) {
	s = strings.TrimSpace(s)
	wrong := func(format string, args ...any) (Rule, error) {
		return Rule{}, fmt.Errorf("rule %q: %s; %s", plain.Line(s, limits.SourceLine), fmt.Sprintf(format, args...), ruleForms)
	}
	if len(s) > limits.PermissionRule {
		return wrong("it has more than %d bytes", limits.PermissionRule)
	}
	if strings.ContainsRune(s, 0) {
		return wrong("there is a NUL in it")
	}
	name, arg, hasArg := strings.Cut(s, "(")
	if hasArg {
		if !strings.HasSuffix(arg, ")") {
			return wrong("there is no ) at its end")
		}
		if arg = strings.TrimSpace(strings.TrimSuffix(arg, ")")); arg == "" {
			return wrong("there is nothing between ( and )")
		}
	}
	r := Rule{text: s, name: name, arg: arg}
	switch name {
	case ruleBash:
		if arg == "*" {
			r.arg = ""
		} else if !strings.HasPrefix(arg, "=") {
			r.words = strings.Fields(arg)
		}
	case ruleEdit, ruleRead:
		if !doublestar.ValidatePattern(arg) {
			return wrong("%q is no pattern of paths", plain.Line(arg, limits.Preview))
		}
	case ruleFetch:
		if scheme, _, ok := strings.Cut(arg, "://"); ok && scheme != "http" && scheme != "https" && scheme != "*" {
			return wrong("only http and https are fetched")
		}
	case ruleSearch, ruleMount:
		if hasArg {
			return wrong("%s takes nothing in parentheses", name)
		}
	case ruleTool:
		if !hasArg {
			return wrong("it needs the name of a tool")
		}
		if !ruleToolName().MatchString(arg) {
			return wrong("%q is no name that a tool can have", plain.Line(arg, limits.Preview))
		}
	default:
		return wrong("there is no rule %q", plain.Name(name))
	}
	return r, nil
}

var ruleToolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_*-]{1,64}$`) })

// ParseRules reads rules; the error names the first that is wrong.
func ParseRules(list []string) ([]Rule, error) {
	if len(list) > limits.PermissionRules {
		return nil, fmt.Errorf("%d rules, more than the limit of %d", len(list), limits.PermissionRules)
	}
	rules := make([]Rule, 0, len(list))
	for _, s := range list {
		r, err := ParseRule(s)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// String is the rule as it was written.
func (r Rule) String() string { return r.text }

// pathMatches says whether a path, absolute and with links resolved, is one of the
// rule's.
func (r Rule) pathMatches(path string, roots []string) bool {
	if r.arg == "" {
		return true
	}
	return slices.ContainsFunc(r.patterns(roots), func(p string) bool { return doublestar.MatchUnvalidated(p, filepath.ToSlash(path)) })
}

// below says whether something of the rule may be inside the folder.
func (r Rule) below(folder string, roots []string) bool {
	folder = strings.TrimSuffix(filepath.ToSlash(folder), "/") + "/"
	return r.arg == "" || slices.ContainsFunc(r.patterns(roots), func(p string) bool {
		base, _ := doublestar.SplitPattern(p)
		return strings.HasPrefix(base+"/", folder) || strings.HasPrefix(folder, base+"/")
	})
}

// patterns are the rule's patterns, absolute.
func (r Rule) patterns(roots []string) []string {
	arg := strings.TrimPrefix(r.arg, "./")
	if strings.HasSuffix(arg, "/") {
		arg += "**"
	}
	if rest, ok := strings.CutPrefix(arg, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		return []string{literalPath(home) + "/" + rest}
	}
	if filepath.IsAbs(arg) || strings.HasPrefix(arg, "/") {
		return []string{arg}
	}
	list := make([]string, len(roots))
	for i, root := range roots {
		list[i] = strings.TrimSuffix(literalPath(root), "/") + "/" + arg
	}
	return list
}

// literalPath is a pattern that matches this very path.
func literalPath(path string) string {
	return pathMeta.Replace(filepath.ToSlash(path))
}

var pathMeta = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`)

// urlMatches says whether a URL, in its canonical form, is one of the rule's.
func (r Rule) urlMatches(url string) bool {
	if r.arg == "" {
		return true
	}
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return false
	}
	host, path := splitHost(rest)
	if path == "" {
		path = "/"
	}
	wantScheme, want := "*", r.arg
	if s, after, ok := strings.Cut(r.arg, "://"); ok {
		wantScheme, want = s, after
	}
	wantHost, wantPath := splitHost(want)
	if wantPath == "" {
		wantPath = "/*"
	}
	return wild(wantScheme, scheme) && wild(strings.ToLower(wantHost), host) && wild(wantPath, path)
}

// undotted is a URL as a server may read it that goes up at .. in a path.
func undotted(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	host, after := splitHost(rest)
	where, query := after, ""
	if at := strings.IndexByte(after, '?'); at >= 0 {
		where, query = after[:at], after[at:]
	}
	// Some take an escaped . or /, and a \\, for what it stands for.
	where = dots.Replace(where)
	clean := path.Clean("/" + where)
	if clean != "/" && strings.HasSuffix(where, "/") {
		clean += "/"
	}
	return scheme + "://" + host + clean + query
}

var dots = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", `\\`, "/")

// splitHost cuts what follows the scheme of a URL.
func splitHost(rest string) (host, path string) {
	at := strings.IndexAny(rest, "/?#")
	if at < 0 {
		return rest, ""
	}
	if path = rest[at:]; path[0] != '/' {
		path = "/" + path
	}
	return rest[:at], path
}

// wild matches a pattern in which * stands for any text.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, last)
}
