package shell

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// ReadOnly says whether the line only reads, as far as it is made of commands that
// are known to. If not, why names what was met first.
//
// What it trusts: the programs on the search path and in /bin and /usr/bin, their
// configuration, and that of the git repository.
func (l *Line) ReadOnly() (ok bool, why string) {
	switch {
	case len(l.Unknown) > 0:
		return false, l.Unknown[0]
	case l.odd != "":
		return false, l.odd
	case len(l.Writes) > 0:
		return false, "it writes " + plain.Line(l.Writes[0].Text, limits.Preview)
	}
	for _, c := range l.Commands {
		if why := reads(c.Args); why != "" {
			return false, why
		}
	}
	return true, ""
}

// reads says why a command may do more than read; "": it only reads.
func reads(words []Word) string {
	name, ours := program(words[0].Text)
	if !ours {
		return plain.Preview(words[0].Text) + " is no program of the system"
	}
	args := words[1:]
	if harmlessWhatever[name] {
		return ""
	}
	check, known := checked[name]
	if !known {
		if versioned[name] && len(args) == 1 && args[0].Literal && args[0].Text == "--version" {
			return ""
		}
		return plain.Preview(name) + " is not on the list of commands that only read"
	}
	if why := check(args); why != "" {
		return name + ": " + why
	}
	return ""
}

// harmlessWhatever neither write nor run anything, whatever their arguments are.
var harmlessWhatever = set(`
	basename cat cd cksum cmp column comm command cut df diff dirname dirs du echo egrep expand expr false fgrep fmt fold free
	grep groups head hexdump id join jq ls md5sum nl nproc od paste popd printenv ps pushd pwd readlink realpath
	rev seq sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sleep stat tac tail tr true tty uname unexpand
	uptime wc which whoami : type`)

// versioned tell their version without reading a project's files.
var versioned = set(`clang g++ gcc make node python python3`)

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

// checked are commands that only read with some arguments. A check gives the reason
// why these may not; "": they do.
var checked = map[string]func(args []Word) string{
	"[":        bracket,
	"base64":   options("o", "--output"),
	"break":    only(`^\d+$`),
	"continue": only(`^\d+$`),
	"exit":     only(`^\d+$`),
	"jobs":     none,
	"wait":     only(`^\d+$`),
	"date":     date,
	"env":      none,
	"file":     options("C", "--compile"),
	"find":     find,
	"git":      git,
	"hostname": only(`^-[fsiI]$`),
	"printf":   printf,
	"read":     read,
	"rg":       options("", "--pre", "--hostname-bin"),
	"sed":      sed,
	"set":      only(`^[-+][eux]+$`, `^[-+][eux]*o$`, `^pipefail$`),
	"sort":     options("oT", "--output", "--compress-program", "--temporary-directory"),
	"strings":  options("", "--plugin"),
	"tee":      only(`^/dev/(null|stdout|stderr)$`),
	"test":     test,
	"tree":     options("oR", "--output"),
	"uniq":     uniq,
}

func none(args []Word) string {
	if len(args) > 0 {
		return "with arguments"
	}
	return ""
}

// literal says why not all words are known.
func literal(args []Word) string {
	for _, w := range args {
		if !w.Literal {
			return "the argument " + plain.Preview(w.Text) + " is not known before it runs"
		}
	}
	return ""
}

// only takes words that match one of the patterns.
func only(patterns ...string) func([]Word) string {
	compiled := sync.OnceValue(func() (all []*regexp.Regexp) {
		for _, p := range patterns {
			all = append(all, regexp.MustCompile(p))
		}
		return all
	})
	return func(args []Word) string {
		for _, w := range args {
			if !w.Literal || !slices.ContainsFunc(compiled(), func(r *regexp.Regexp) bool { return r.MatchString(w.Text) }) {
				return "with " + plain.Preview(w.Text)
			}
		}
		return ""
	}
}

// beforeDash are the words in which options may stand. A -- that may be the value of
// the option in front of it ends nothing.
func beforeDash(args []Word) []Word {
	for i, w := range args {
		if w.Literal && w.Text == "--" && (i == 0 || !strings.HasPrefix(args[i-1].Text, "-") || alone.MatchString(args[i-1].Text)) {
			return args[:i]
		}
	}
	return args
}

// alone are options that take no value from the next word, whatever the command is.
var alone = regexp.MustCompile(`^(-\d+|-p|--[a-z-]+=.*|--(all|cached|decorate|follow|graph|name-only|name-status|no-color|no-patch|numstat|oneline|patch|porcelain|reverse|short|shortstat|staged|stat|summary))$`)

// options refuses short options, alone or in a cluster, and long ones, also
// abbreviated. What stands behind -- is no option.
func options(short string, long ...string) func([]Word) string {
	return func(args []Word) string {
		args = beforeDash(args)
		if why := literal(args); why != "" {
			return why
		}
		for _, w := range args {
			if refused(w.Text, short, long) {
				return "with " + plain.Preview(w.Text)
			}
		}
		return ""
	}
}

func refused(word, short string, long []string) bool {
	if strings.HasPrefix(word, "--") {
		name, _, _ := strings.Cut(word, "=")
		return len(name) > 2 && slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) })
	}
	return strings.HasPrefix(word, "-") && strings.ContainsAny(word[1:], short)
}

// find takes -exec too: what it runs is looked at by itself.
func find(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	for _, w := range args {
		if w.Text == "-delete" || strings.HasPrefix(w.Text, "-fprint") || w.Text == "-fls" {
			return "with " + plain.Preview(w.Text)
		}
	}
	return ""
}

func date(args []Word) string {
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.Literal:
			return "the argument " + plain.Preview(w.Text) + " is not known before it runs"
		case strings.HasPrefix(w.Text, "+"), w.Text == "-u", w.Text == "-R", w.Text == "--utc", strings.HasPrefix(w.Text, "-I"),
			strings.HasPrefix(w.Text, "--iso-8601"), strings.HasPrefix(w.Text, "--rfc-3339="), strings.HasPrefix(w.Text, "--date="):
		case w.Text == "-d", w.Text == "-r":
			i++
			if i < len(args) && !args[i].Single {
				return "its arguments are computed"
			}
		default:
			return "with " + plain.Preview(w.Text)
		}
	}
	return ""
}

func printf(args []Word) string {
	if len(args) == 0 {
		return ""
	}
	if !args[0].Literal || strings.HasPrefix(args[0].Text, "-") {
		return "its format is not known before it runs"
	}
	if counts.MatchString(args[0].Text) {
		return "its format sets a variable"
	}
	return ""
}

// counts finds %n, which sets the variable that the argument names, such as PATH.
var counts = regexp.MustCompile(`%[^%A-Za-z]*[A-Za-z]?[A-Za-z]?n`)

// read takes names that mean nothing to the shell.
func read(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	for i := 0; i < len(args); i++ {
		switch text := args[i].Text; {
		case text == "-r", text == "-s":
		case text == "-d", text == "-n", text == "-t", text == "-p":
			i++
		case ordinary(text):
		default:
			return "with " + plain.Preview(text)
		}
	}
	return ""
}

func uniq(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	operands, dash := 0, false
	for _, w := range args {
		if dash || !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			operands++
		}
		dash = dash || w.Text == "--"
	}
	if operands > 1 {
		return "it may write its second argument"
	}
	return ""
}

var (
	unaryTest  = set(`-z -n -e -f -d -r -w -x -s -L -h -p -S -b -c -g -u -k -O -G -N -t`)
	binaryTest = set(`= == != -eq -ne -lt -le -gt -ge -nt -ot -ef`)
)

// test takes forms whose operator is known: of others a word may turn out to be
// one, and some run what they are given.
func test(args []Word) string {
	for _, w := range args {
		if !w.Single {
			return "its arguments are computed"
		}
	}
	is := func(i int, ops map[string]bool) bool { return args[i].Literal && ops[args[i].Text] }
	if len(args) > 1 && args[0].Literal && args[0].Text == "!" && !(len(args) == 3 && is(1, binaryTest)) {
		args = args[1:]
	}
	switch {
	case len(args) < 2, len(args) == 2 && is(0, unaryTest), len(args) == 3 && is(1, binaryTest):
		return ""
	}
	return "a test of this form"
}

func bracket(args []Word) string {
	if n := len(args); n == 0 || !args[n-1].Literal || args[n-1].Text != "]" {
		return "without ]"
	}
	return test(args[:len(args)-1])
}

// What a script of sed may be made of: addresses, p, d, q, =, and s without the
// flags that write and run.
var sedScript = sync.OnceValue(func() *regexp.Regexp {
	// A delimiter within [ ] does not end a pattern, so [ ] may not hold one.
	pattern := func(d string) string {
		return fmt.Sprintf(`(?:[^%[1]s\\\n[]|\\[^\n]|\[\^?\]?[^%[1]s\\\n[\]]*\])*`, d)
	}
	address := `(?:\d+|\$|/` + pattern(`/`) + `/)`
	var replace []string
	for _, d := range []string{`/`, `\|`, `#`, `,`} {
		replace = append(replace, fmt.Sprintf(`s%[1]s%[2]s%[1]s(?:[^%[1]s\\\n]|\\[^\n])*%[1]s[gpiI0-9]*`, d, pattern(d)))
	}
	command := fmt.Sprintf(`(?:%[1]s(?:,%[1]s)?)?\s*!?\s*(?:[pdq=]|%[2]s)`, address, strings.Join(replace, "|"))
	return regexp.MustCompile(fmt.Sprintf(`^\s*%[1]s(?:\s*[;\n]\s*%[1]s)*\s*;?\s*$`, command))
})

func sed(args []Word) string {
	if why := literal(args); why != "" {
		return why
	}
	given := false
	script := func(text string) string {
		given = true
		if !sedScript().MatchString(text) {
			return "its script may write or run something"
		}
		return ""
	}
	var operands []string
	for i := 0; i < len(args); i++ {
		text := args[i].Text
		long, value, _ := strings.Cut(text, "=")
		switch {
		case long == "--expression":
			if why := script(value); why != "" || value == "" {
				return "its script may write or run something"
			}
		case text == "--quiet", text == "--silent", text == "--regexp-extended":
		case strings.HasPrefix(text, "-") && text != "-" && strings.Trim(text[1:], "nErsuz") == "":
		case strings.HasPrefix(text, "-") && strings.Trim(strings.TrimSuffix(text[1:], "e"), "nErsuz") == "" && strings.HasSuffix(text, "e"):
			if i++; i == len(args) {
				return "without a script"
			}
			if why := script(args[i].Text); why != "" {
				return why
			}
		case strings.HasPrefix(text, "-") && text != "-":
			return "with " + plain.Preview(text)
		default:
			operands = append(operands, text)
		}
	}
	if given || len(operands) == 0 {
		return ""
	}
	return script(operands[0])
}

// OnlyReads says whether the command alone is on the list of what only reads.
func (c Command) OnlyReads() bool { return reads(c.Args) == "" }
