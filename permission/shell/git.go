package shell

import (
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
)

// gitReads are the commands of git that only read, whatever their arguments, but
// for those of gitRefused.
var gitReads = set(`
	annotate blame cat-file check-attr check-ignore cherry count-objects describe diff diff-files diff-index diff-tree
	for-each-ref grep log ls-files ls-tree merge-base name-rev range-diff rev-list rev-parse shortlog show show-branch
	show-ref status whatchanged`)

// gitRefused are options that write a file or run a program, also abbreviated.
var gitRefused = []string{"--output", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager"}

// gitLists are commands that read with these arguments alone.
var gitLists = map[string]func([]Word) string{
	"branch":   branch,
	"config":   gitConfig,
	"reflog":   only(`^show$`, `^HEAD$`, `^-\d+$`),
	"remote":   remote,
	"stash":    first("list", "show"),
	"tag":      tags,
	"worktree": first("list"),
}

// git looks for a command that only reads.
func git(args []Word) string {
	for len(args) > 0 {
		w := args[0]
		if !w.Literal {
			return "its command is not known before it runs"
		}
		switch w.Text {
		case "--no-pager", "--no-optional-locks", "--literal-pathspecs":
			args = args[1:]
			continue
		case "-C":
			if len(args) < 2 || !args[1].Literal {
				return "its folder is not known before it runs"
			}
			args = args[2:]
			continue
		case "--version", "version":
			return ""
		}
		break
	}
	if len(args) == 0 {
		return ""
	}
	name, rest := args[0].Text, args[1:]
	if check, ok := gitLists[name]; ok {
		if why := check(rest); why != "" {
			return name + " " + why
		}
		return ""
	}
	if !gitReads[name] {
		return plain.Preview(name) + " is not on the list of commands that only read"
	}
	short := ""
	if name == "grep" {
		short = "O"
	}
	return options(short, gitRefused...)(rest)
}

// first takes one of the words, then what does not run or write.
func first(names ...string) func([]Word) string {
	return func(args []Word) string {
		if len(args) == 0 || !args[0].Literal || !slices.Contains(names, args[0].Text) {
			return "may write"
		}
		return options("", gitRefused...)(args[1:])
	}
}

// remote takes lists of remotes, and the address of one.
func remote(args []Word) string {
	if len(args) > 0 && args[0].Literal && args[0].Text == "get-url" {
		return options("", "--add")(args[1:])
	}
	return only(`^-v$`)(args)
}

// branch takes lists of branches.
func branch(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	lists, operands := false, 0
	for _, w := range args {
		switch {
		case w.Text == "--list", w.Text == "--contains", w.Text == "--merged", w.Text == "--no-merged":
			lists = true
		case w.Text == "-a", w.Text == "-r", w.Text == "-v", w.Text == "-vv", w.Text == "--all", w.Text == "--remotes",
			w.Text == "--show-current", w.Text == "--verbose":
		case strings.HasPrefix(w.Text, "-"):
			return "with " + plain.Preview(w.Text)
		default:
			operands++
		}
	}
	if operands > 0 && !lists {
		return "may write"
	}
	return ""
}

// tags takes lists of tags.
func tags(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	for i, w := range args {
		if i == 0 && w.Text != "-l" && w.Text != "--list" || i > 0 && strings.HasPrefix(w.Text, "-") {
			return "with " + plain.Preview(w.Text)
		}
	}
	return ""
}

// gitConfig takes what shows settings.
func gitConfig(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	for i, w := range args {
		switch {
		case i == 0:
			if w.Text != "--get" && w.Text != "--get-all" && w.Text != "--list" && w.Text != "-l" {
				return "may write"
			}
		case w.Text == "--show-origin", w.Text == "--show-scope", w.Text == "--global", w.Text == "--local", w.Text == "--name-only":
		case strings.HasPrefix(w.Text, "-"):
			return "with " + plain.Preview(w.Text)
		}
	}
	if len(args) == 0 {
		return "may write"
	}
	return ""
}

// WithoutGitOptions are the words of a git command without the options in front of
// its command, by which a rule for git push would miss git -C . push.
func WithoutGitOptions(words []Word) []Word {
	i := 1
	for i < len(words) && words[i].Literal && strings.HasPrefix(words[i].Text, "-") {
		switch words[i].Text {
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env":
			i++
		}
		i++
	}
	if i >= len(words) {
		return words[:1]
	}
	return append(slices.Clone(words[:1]), words[i:]...)
}
