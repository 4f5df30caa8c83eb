package shell

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// Line is what a command line does.
type Line struct {
	// Commands are the simple commands in their order, those of pipelines, lists,
	// subshells, functions and substitutions, and those that wrappers run.
	Commands []Command
	// Writes and Reads are the files that redirections open. Those that lead nowhere,
	// such as /dev/null and 2>&1, are left out.
	Writes, Reads []Word
	// Moved says that the line changes its folder: relative paths may mean others.
	Moved bool
	// Unknown are the reasons why Commands, Writes and Reads may not be all. None:
	// they are.
	Unknown []string

	odd    string   // why it does more than read, beside what Commands and Writes say
	depth  int      // of lines within lines
	around [][]Word // the wrappers around the line that is read
	steps  int      // commands that were looked at
}

// Command is one simple command.
type Command struct {
	// Args are its words, the name first. There is at least one.
	Args []Word
	// Outer are the same command as the wrappers around it say it, such as timeout 10
	// …, the innermost first.
	Outer [][]Word
}

// Bounds of what is looked at; beyond them a line is unknown.
const (
	maxDepth = 8 // of lines within lines
	maxSteps = limits.ShellCommands
)

// Parse reads a command line as bash does. It never fails.
func Parse(text string) *Line {
	l := &Line{}
	l.parse(text)
	return l
}

// parse adds what a line does.
func (l *Line) parse(text string) {
	defer func() {
		if v := recover(); v != nil { // of the parser
			l.unknown("it cannot be read: %v", v)
		}
	}()
	switch {
	case len(text) > limits.ShellLine:
		l.unknown("it has more than %d bytes", limits.ShellLine)
		return
	case l.depth > maxDepth:
		l.unknown("there are more than %d lines within lines", maxDepth)
		return
	case strings.ContainsRune(text, 0):
		l.unknown("there is a NUL in it")
		return
	case strings.ContainsRune(text, '\r'): // the parser skips some
		l.unknown("there is a carriage return in it")
	case strings.Contains(text, "\\\n") && strings.ContainsAny(text, "#<"): // bash goes on with the next line in fewer places
		l.unknown("there is a \\ at the end of a line, and a comment or a heredoc")
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		why := err.Error()
		if e := new(syntax.ParseError); errors.As(err, e) {
			why = e.Text
		}
		l.unknown("it cannot be read: %s", why)
	}
	if file != nil {
		l.walk(file)
	}
}

func (l *Line) unknown(format string, args ...any) {
	why := plain.Line(fmt.Sprintf(format, args...), limits.Preview)
	if len(l.Unknown) < limits.Violations && !slices.Contains(l.Unknown, why) {
		l.Unknown = append(l.Unknown, why)
	}
}

// more notes why a line does more than read.
func (l *Line) more(format string, args ...any) {
	if l.odd == "" {
		l.odd = plain.Line(fmt.Sprintf(format, args...), limits.Preview)
	}
}

// walk looks at a node and all below it. What is not named here is unknown.
func (l *Line) walk(root syntax.Node) {
	syntax.Walk(root, func(node syntax.Node) bool {
		switch n := node.(type) {
		case nil, *syntax.File, *syntax.Comment, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause,
			*syntax.CaseClause, *syntax.CaseItem, *syntax.BinaryCmd, *syntax.Word, *syntax.Lit, *syntax.SglQuoted,
			*syntax.DblQuoted, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.BraceExp, *syntax.TimeClause,
			*syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm, *syntax.ParenTest:
		case *syntax.Stmt:
			if n.Coprocess || n.Disown {
				l.unknown("it is no bash")
			}
		case *syntax.CallExpr:
			l.call(n)
		case *syntax.Redirect:
			l.redirect(n)
		case *syntax.Assign:
			l.assign(n)
		case *syntax.ForClause:
			if n.Select {
				l.more("select reads what it does from its input")
			}
		case *syntax.WordIter:
			if n.Name != nil && !ordinary(n.Name.Value) {
				l.unknown("it sets %s", n.Name.Value)
			}
		case *syntax.FuncDecl:
			l.more("it defines a function")
		case *syntax.DeclClause:
			l.declare(n)
		case *syntax.ParamExp:
			l.parameter(n)
		case *syntax.ArithmExp:
			l.arithmetic(n.X)
		case *syntax.TestClause:
			l.test(n.X)
		case *syntax.BinaryTest, *syntax.UnaryTest: // looked at with the whole
		default:
			l.unknown("there is a %s in it", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", node), "*syntax.")))
		}
		return true
	})
}

// call notes a simple command.
func (l *Line) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return // assignments alone, which assign looks at
	}
	for _, a := range n.Assigns {
		if a.Name != nil && !harmless(a.Name.Value) {
			l.unknown("it sets %s for a command", a.Name.Value)
		}
	}
	words := make([]Word, len(n.Args))
	for i, w := range n.Args {
		words[i] = wordOf(w)
	}
	l.command(words, l.around)
}

// assign looks at one assignment.
func (l *Line) assign(n *syntax.Assign) {
	switch {
	case n.Index != nil || n.Array != nil:
		l.unknown("it sets an array")
	case n.Name != nil && !n.Naked && !ordinary(n.Name.Value) && !harmless(n.Name.Value):
		l.unknown("it sets %s", n.Name.Value)
	}
}

// declare looks at export, declare and the like; the assignments are walked to.
func (l *Line) declare(n *syntax.DeclClause) {
	if n.Variant == nil || n.Variant.Value != "export" {
		l.unknown("there is a declaration in it")
		return
	}
	for _, a := range n.Args {
		if a.Name == nil || !harmless(a.Name.Value) {
			l.unknown("it exports a variable")
		}
	}
}

// redirect notes the file of a redirection.
func (l *Line) redirect(n *syntax.Redirect) {
	if n.N != nil && strings.HasPrefix(n.N.Value, "{") && !ordinary(strings.Trim(n.N.Value, "{}")) {
		l.unknown("a redirection sets %s", n.N.Value)
	}
	w := wordOf(n.Word)
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.DplIn, syntax.DplOut:
		if w.Literal && descriptor(w.Text) {
			return
		}
	case syntax.RdrIn:
		if w.Literal && !Network(w.Text) {
			if w.Text != "/dev/null" {
				l.Reads = append(l.Reads, w)
			}
			return
		}
		l.Reads = append(l.Reads, w)
		l.more("it reads from what cannot be told")
		return
	}
	if w.Literal && nowhere[w.Text] {
		return
	}
	l.Writes = append(l.Writes, w)
}

// nowhere are files to which writing changes nothing.
var nowhere = map[string]bool{"/dev/null": true, "/dev/stdout": true, "/dev/stderr": true, "/dev/fd/1": true, "/dev/fd/2": true}

// descriptor says whether >&text duplicates or closes a descriptor.
func descriptor(text string) bool {
	digits := strings.TrimSuffix(text, "-")
	return text != "" && strings.Trim(digits, "0123456789") == ""
}

// Network says whether a redirection of the file connects to a host.
func Network(path string) bool {
	return strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/")
}

// parameter looks at ${…}: some forms assign, and some run what a variable holds.
func (l *Line) parameter(n *syntax.ParamExp) {
	simple := n.Flags == nil && !n.Excl && !n.Width && !n.IsSet && n.NestedParam == nil && n.Index == nil && len(n.Modifiers) == 0 &&
		n.Slice == nil && n.Names == 0
	if simple && n.Exp != nil {
		switch n.Exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.OtherParamOps:
			simple = false
		}
	}
	if !simple {
		l.unknown("an expansion in it may run what a variable holds")
	}
}

// arithmetic takes only numbers: what a variable holds is evaluated too, and may
// hold commands.
func (l *Line) arithmetic(x syntax.Node) {
	if x == nil {
		return
	}
	syntax.Walk(x, func(node syntax.Node) bool {
		if w, ok := node.(*syntax.Word); ok && strings.Trim(w.Lit(), "0123456789") != "" || ok && w.Lit() == "" {
			l.unknown("there is arithmetic with variables in it")
		}
		return true
	})
}

// test looks at [[ … ]], of which some operators evaluate arithmetic.
func (l *Line) test(x syntax.TestExpr) {
	syntax.Walk(x, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.BinaryTest:
			switch n.Op {
			case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
				l.arithmetic(n.X)
				l.arithmetic(n.Y)
			}
		case *syntax.UnaryTest:
			switch n.Op {
			case syntax.TsVarSet, syntax.TsRefVar:
				l.unknown("a test in it may run what a variable holds")
			}
		}
		return true
	})
}

// harmless are variables that change only how things look, for whatever command.
func harmless(name string) bool {
	switch name {
	case "LANG", "LANGUAGE", "TZ", "NO_COLOR", "COLUMNS", "CI":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// ordinary are names that no shell and hardly any program gives a meaning.
func ordinary(name string) bool {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || name == "_" {
		return false
	}
	return !strings.HasSuffix(name, "_proxy") && !strings.HasPrefix(name, "npm_")
}

// Set tells the line of variables that are set from outside for it: those that may
// change what its commands do make it unknown.
func (l *Line) Set(names ...string) {
	for _, name := range names {
		if !harmless(name) {
			l.unknown("%s is set for it", name)
		}
	}
}
