package trust

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// Text is what a person is shown before they trust: every file that is new or has
// changed with its diff, and those that are gone. It is safe to print. "" where there
// is nothing to show.
func (s State) Text() string {
	var b strings.Builder
	for _, c := range s.New {
		fmt.Fprintf(&b, "new: %s, %s\n%s\n", shown(c.Path), counted(c.Size, "byte"), c.Diff)
	}
	for _, c := range s.Changed {
		lost := ""
		if c.Lost {
			lost = "; what was trusted before is not kept any more, so all of it is shown"
		}
		fmt.Fprintf(&b, "changed: %s, %s%s\n%s\n", shown(c.Path), counted(c.Size, "byte"), lost, c.Diff)
	}
	for _, path := range s.Gone {
		fmt.Fprintf(&b, "gone: %s\n", shown(path))
	}
	return b.String()
}

// noticed is how many files a notice names.
const noticed = 10

// Notice says in one line which files are not loaded, and what to do; "" where all
// are trusted.
func (s State) Notice() string {
	return s.NoticeWhere(func(string) bool { return false })
}

// NoticeWhere is Notice where something is loaded already: goesOn says of which files,
// by path, what was loaded before goes on to serve.
func (s State) NoticeWhere(goesOn func(path string) bool) string {
	if s.Complete() {
		return ""
	}
	var names []string
	what := "not trusted and not loaded"
	name := func(c Change, why string) {
		if goesOn(c.Path) {
			why += ", what was loaded before goes on"
			what = "not trusted and not loaded as now on disk"
		}
		names = append(names, shown(c.Path)+" ("+why+")")
	}
	for _, c := range s.New {
		name(c, "new")
	}
	for _, c := range s.Changed {
		name(c, "changed")
	}
	n := len(names)
	if n > noticed {
		names = append(names[:noticed], fmt.Sprintf("and %d more", n-noticed))
	}
	are := "are"
	if n == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s of the project %s %s %s: %s; to look at them and trust them: %s",
		counted(n, "file"), plain.Line(s.Root, limits.SourceLine), are, what, strings.Join(names, ", "), Command(s.Root))
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
