package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// How package bash labels the effects of commands that are waited for, and of those
// in the background.
const (
	waitedFor    = "bash.run("
	inBackground = "bash.start("
)

// Awaited names for a person the commands below f that somebody waits for.
func Awaited(f *cordis.Fiber) []string {
	names := commands(f, waitedFor)
	for _, child := range f.Children() {
		names = append(names, Awaited(child)...)
	}
	return once(names)
}

// Hanging names for a person what below f has not ended: commands, which are told
// to end when their plugin does, and plugins that have begun to end and wait for
// nothing but themselves.
func Hanging(f *cordis.Fiber) []string {
	names := append(commands(f, waitedFor), commands(f, inBackground)...)
	for _, child := range f.Children() {
		names = append(names, Hanging(child)...)
	}
	if names == nil && f.State() == cordis.Unloading && f.Parent() != nil {
		name := plain.Name(f.Name())
		if m, ok := tool.MountOf(f.Context()); ok {
			name = m.ID
		}
		names = []string{"the plugin " + name}
	}
	return once(names)
}

// commands names those of a fiber.
func commands(f *cordis.Fiber, verb string) (names []string) {
	for _, e := range f.Effects() {
		if line, ok := strings.CutPrefix(e.Label, verb); ok {
			names = append(names, "the command "+strings.TrimSuffix(line, ")"))
		}
	}
	return names
}

func once(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// hangingNamed is how many of them one sentence names.
const hangingNamed = 3

// List is names in a sentence; "" if there are none.
func List(names []string) string {
	if more := len(names) - hangingNamed; more > 0 {
		names = append(slices.Clone(names[:hangingNamed]), fmt.Sprintf("%d more", more))
	}
	return plain.Line(strings.Join(names, ", "), limits.ErrorText)
}
