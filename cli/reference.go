package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/cli/command"
)

// Command is a command as the reference documentation tells of it.
type Command struct {
	Name    string // dsh mcp
	Short   string
	Long    string
	Example string
	Flags   []Flag
}

// Flag is a flag of a command.
type Flag struct {
	Name    string // vm-timeout
	Type    string // duration; empty for a switch
	Default string // empty: none
	Range   string // 1ms to 1m0s; empty: none
	Usage   string
}

// Reference gives the commands that a person may use, in the order of dsh --help,
// each before those below it.
func Reference() []Command { return below(newRoot(command.Streams{})) }

func below(parent *cobra.Command) []Command {
	var out []Command
	for _, c := range parent.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		out = append(append(out, describe(c)), below(c)...)
	}
	return out
}

func describe(c *cobra.Command) Command {
	out := Command{Name: c.CommandPath(), Short: c.Short, Long: c.Long, Example: c.Example}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		one := Flag{Name: f.Name, Type: kind, Default: f.DefValue, Usage: usage}
		switch v := f.Value.(type) {
		case *command.Duration:
			one.Range = fmt.Sprintf("%s to %s", short(v.Min), short(v.Max))
			one.Default = short(v.Value)
			if v.Value < v.Min {
				one.Default = "" // none, unless it is given
			}
		case *command.Mebibytes:
			one.Range = fmt.Sprintf("%d to %d", v.Min, v.Max)
		}
		one.Default = strings.Trim(one.Default, "[]") // of a list
		if one.Default == "false" || one.Default == "0" {
			one.Default = ""
		}
		out.Flags = append(out.Flags, one)
	})
	return out
}

// short writes a duration as a person does: 10m, not 10m0s.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
