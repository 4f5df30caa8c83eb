package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// command notes a command, and what it runs: outer are the wrappers around it.
func (l *Line) command(words []Word, outer [][]Word) {
	if l.steps++; l.steps > maxSteps {
		l.unknown("there are more than %d commands in it", maxSteps)
		return
	}
	if len(words) == 0 {
		return
	}
	if !words[0].Literal {
		l.unknown("the name of a command is computed: %s", words[0].Text)
		l.note(words, outer)
		return
	}
	name, ours := program(words[0].Text)
	if !ours {
		l.note(words, outer) // it may be called so and be another
	}
	if l.unwrap(name, words, outer) {
		return
	}
	if ours {
		l.note(words, outer)
	}
	args := words[1:]
	switch name {
	case "cd", "pushd", "popd":
		l.Moved = true
	case "find":
		l.findExec(args, append([][]Word{words}, outer...))
	case "sudo", "doas":
		l.inner(words, outer, l.skip(args, "nEHSkbAPv", "ugCpDTRhr", nil))
	case "trap":
		if len(args) > 0 && args[0].Text != "-" && args[0].Text != "-l" && args[0].Text != "-p" {
			if args[0].Literal {
				l.within(args[0].Text, words, outer)
			} else {
				l.unknown("the line within the line is computed")
			}
		}
	case "alias", "unalias", "enable", "shopt", "hash", "bind", "complete":
		l.unknown("%s may change what the names of commands mean", name)
	case "mapfile", "readarray":
		l.unknown("%s may run commands", name)
	case "zsh", "ksh", "mksh", "yash", "fish", "csh", "tcsh", "pwsh":
		for _, w := range args {
			if !w.Literal || strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "c") {
				l.unknown("a line of %s is not read here", name)
			}
		}
	case ".", "source":
		if len(args) > 0 && (!args[0].Literal || strings.HasPrefix(args[0].Text, "/dev/") || strings.HasPrefix(args[0].Text, "/proc/")) {
			l.unknown("what %s reads", name)
		}
	}
}

// note adds a command as it is.
func (l *Line) note(words []Word, outer [][]Word) {
	l.Commands = append(l.Commands, Command{Args: words, Outer: outer})
}

// program is the name of a program without its folder, and whether it is the
// system's: of those that are named by a path, those in its own folders.
func program(name string) (base string, ours bool) {
	dir, base := path.Split(name)
	switch dir {
	case "", "/bin/", "/usr/bin/":
		return base, true
	}
	return base, false
}

// unwrap looks through commands that only run another one, and says whether words
// is one of them.
func (l *Line) unwrap(name string, words []Word, outer [][]Word) bool {
	args := words[1:]
	var rest []Word
	switch name {
	case "command":
		if len(args) > 0 && args[0].Literal && strings.HasPrefix(args[0].Text, "-") && strings.ContainsAny(args[0].Text, "vV") {
			return false // it only tells
		}
		rest = l.skip(args, "p", "", nil)
	case "builtin":
		rest = args
	case "exec":
		rest = l.skip(args, "cl", "a", nil)
		l.more("exec replaces the shell")
	case "env":
		rest = l.skip(args, "i0v", "u", []string{"--ignore-environment", "--null", "--debug"})
		rest = l.environment(rest)
	case "nice":
		rest = l.skip(args, "0123456789", "n", []string{"--adjustment="})
	case "ionice":
		rest = l.skip(args, "t", "cn", nil)
	case "nohup", "setsid":
		rest = l.skip(args, "fwc", "", nil)
		l.more("%s starts something that may stay", name)
	case "stdbuf":
		rest = l.skip(args, "", "ioe", []string{"--input=", "--output=", "--error="})
	case "time":
		rest = l.skip(args, "pv", "", nil)
	case "timeout":
		rest = l.skip(args, "v", "ks", []string{"--foreground", "--preserve-status", "--verbose", "--kill-after=", "--signal="})
		if len(rest) > 0 {
			if !rest[0].Single {
				l.unknown("the arguments of timeout are computed")
			}
			rest = rest[1:]
		}
	case "xargs":
		rest = l.xargs(args)
	case "busybox", "toybox":
		rest = args
	case "bash", "sh", "dash", "ash":
		return l.script(name, words, outer)
	case "eval":
		return l.eval(words, outer)
	default:
		return false
	}
	if len(rest) == 0 {
		return false
	}
	l.command(rest, append([][]Word{words}, outer...))
	return true
}

// inner notes what a command runs that is noted itself.
func (l *Line) inner(words []Word, outer [][]Word, rest []Word) {
	if rest = l.environment(rest); len(rest) > 0 {
		l.command(rest, append([][]Word{words}, outer...))
	}
}

// skip leaves out the options of a wrapper: flags stand alone, valued take a value,
// long are long options as they are written, up to an = if they take a value. Any
// other option makes the line unknown.
func (l *Line) skip(args []Word, flags, valued string, long []string) []Word {
	for len(args) > 0 {
		w := args[0]
		if !w.Literal {
			return args // a computed name, which command says
		}
		if !strings.HasPrefix(w.Text, "-") || w.Text == "-" {
			return args
		}
		args = args[1:]
		if w.Text == "--" {
			return args
		}
		if strings.HasPrefix(w.Text, "--") {
			ok := slices.ContainsFunc(long, func(known string) bool {
				return w.Text == known || strings.HasSuffix(known, "=") && strings.HasPrefix(w.Text, known)
			})
			if !ok {
				l.unknown("the option %s of a wrapper", w.Text)
			}
			continue
		}
		cluster := w.Text[1:]
		for cluster != "" && strings.IndexByte(flags, cluster[0]) >= 0 {
			cluster = cluster[1:]
		}
		switch {
		case cluster == "":
		case strings.IndexByte(valued, cluster[0]) < 0:
			l.unknown("the option %s of a wrapper", w.Text)
		case len(cluster) == 1: // its value is the next word
			if len(args) > 0 {
				if !args[0].Single {
					l.unknown("the arguments of a wrapper are computed")
				}
				args = args[1:]
			}
		}
	}
	return args
}

var assignment = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// environment leaves out assignments in front of a command.
func (l *Line) environment(words []Word) []Word {
	for len(words) > 0 {
		found := assignment.FindString(words[0].Text)
		if found == "" {
			return words
		}
		if name := strings.TrimSuffix(found, "="); !harmless(name) || !words[0].Single {
			l.unknown("it sets %s for a command", name)
		}
		words = words[1:]
	}
	return nil
}

// xargs gives the command that xargs runs, with what it adds.
func (l *Line) xargs(args []Word) []Word {
	replace := ""
	if len(args) > 1 && args[0].Literal && strings.HasPrefix(args[0].Text, "-I") {
		replace = args[0].Text[2:]
		after := args[1]
		if replace == "" {
			replace, after = args[1].Text, append(args, Word{})[2]
		}
		if strings.HasPrefix(after.Text, "-") { // a later -n undoes -I
			replace = ""
		}
	}
	rest := l.skip(args, "0rtx", "nLPIdsEa", []string{"--null", "--no-run-if-empty", "--max-args=", "--max-procs=", "--max-lines=", "--delimiter=", "--verbose"})
	if len(rest) == 0 {
		rest = []Word{known("echo")}
	}
	if replace == "" {
		return append(slices.Clone(rest), Word{Text: "…", Many: true})
	}
	return filled(rest, replace)
}

// filled are words in which a placeholder is replaced by what is not known.
func filled(words []Word, placeholder string) []Word {
	words = slices.Clone(words)
	for i, w := range words {
		if strings.Contains(w.Text, placeholder) {
			words[i].Literal = false
		}
	}
	return words
}

// findExec notes the commands that find runs.
func (l *Line) findExec(args []Word, outer [][]Word) {
	for i := 0; i < len(args); i++ {
		switch args[i].Text {
		case "-exec", "-execdir", "-ok", "-okdir":
		default:
			continue
		}
		from := i + 1
		for i = from; i < len(args) && args[i].Text != ";" && args[i].Text != "+"; i++ {
		}
		inner := filled(args[from:i], "{}")
		if i < len(args) && args[i].Text == "+" {
			inner = append(inner, Word{Text: "…", Many: true})
		}
		l.command(inner, outer)
	}
}

// script looks into bash -c. A shell that reads its commands from somewhere else is
// a command like any other, but what it reads from its input is unknown.
func (l *Line) script(name string, words []Word, outer [][]Word) bool {
	args := words[1:]
	for i, w := range args {
		if !w.Literal {
			l.unknown("the arguments of %s are computed", name)
			return false
		}
		if !strings.HasPrefix(w.Text, "-") || w.Text == "-" || w.Text == "--" {
			if w.Text == "-" || w.Text == "--" {
				l.unknown("what %s reads", name)
			}
			return false // a file
		}
		if strings.Trim(w.Text, "-euxcl") != "" || strings.HasPrefix(w.Text, "--") {
			l.unknown("the option %s of %s", w.Text, name)
			return false
		}
		if strings.Contains(w.Text, "c") {
			if strings.Contains(w.Text, "l") {
				l.more("a login shell reads its profile")
			}
			if i+1 == len(args) || !args[i+1].Literal {
				l.unknown("the line within the line is computed")
				return false
			}
			if strings.HasPrefix(args[i+1].Text, "-") || strings.HasPrefix(args[i+1].Text, "+") { // an option still
				l.unknown("the option %s of %s", args[i+1].Text, name)
				return false
			}
			if name != "bash" {
				l.plain(name, args[i+1].Text)
			}
			l.within(args[i+1].Text, words, outer)
			return true
		}
	}
	l.unknown("what %s reads from its input", name)
	return false
}

// bashOnly are what other shells read as something else: in dash [[ is the name of a
// program, so that > and || behind it redirect and run.
var bashOnly = []string{"[[", "((", "$'", "$\"", "$[", "<<<", "<(", ">(", "&>", ">&", "<&", "|&", ";&", "function", "select", "coproc"}

// plain makes the line unknown if the shell may read the text otherwise than bash.
func (l *Line) plain(name, text string) {
	for _, s := range bashOnly {
		if rest := strings.ReplaceAll(strings.ReplaceAll(text, ">&1", ""), ">&2", ""); strings.Contains(rest, s) {
			l.unknown("%s may read %s otherwise than bash", name, s)
		}
	}
}

// Plain tells the line that it is read by a shell that may not be bash.
func (l *Line) Plain(text string) { l.plain("sh", text) }

// eval looks into the line that eval runs.
func (l *Line) eval(words []Word, outer [][]Word) bool {
	args := words[1:]
	texts := make([]string, len(args))
	for i, w := range args {
		if !w.Literal {
			l.unknown("what eval runs is computed")
			return false
		}
		texts[i] = w.Text
	}
	l.within(strings.Join(texts, " "), words, outer)
	return true
}

// within adds what a line does that a command runs.
func (l *Line) within(text string, words []Word, outer [][]Word) {
	before := l.around
	l.around = append([][]Word{words}, outer...)
	l.depth++
	l.parse(text)
	l.depth--
	l.around = before
}
