package work

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/providers"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/serve/terminal"
)

// runOptions are the flags of dsh run, and its task.
type runOptions struct {
	model, effort       string
	session             string
	resume              bool
	cwd                 string
	roots, readOnly     []string
	implied             []string // the roots where no layer names some
	layers              command.LayerOptions
	given               *pflag.FlagSet
	self                bool
	permission          string
	allow, deny         []string
	asJSON              bool
	maxSteps, maxTokens number
	timeout             command.Duration
	passEnv             []string
	allowPrivate        bool

	task      string // "" with resume: what was interrupted goes on
	fromStdin bool   // standard input is the task

	mode   permission.Mode // "" where no flag says
	rules  struct{ allow, deny []permission.Rule }
	config llm.Config // without a provider where a resumed session says
}

const runLong = `Work on a task in a folder: the model reads, changes and runs what the task needs,
and what it may do is for --permission to say. The task is the argument, or comes
from standard input where there is none, or where it is -. Where the task is an
argument, and standard input a file or a pipe, what is there is added to the task
(at most 1 MiB together); a pipe that says nothing for 3 seconds is left, with a
warning. </dev/null gives nothing.

The last answer goes to standard output, what happens meanwhile to standard error
if that is a terminal. A session is kept of it (dsh sessions); its id is the last
line on standard error. SIGINT (Ctrl-C) or SIGTERM once cancels the turn, keeps the
session and ends the program within 2 seconds; twice ends it at once, by that signal
(for a shell 130 or 143). What still runs is killed with it.

Permission modes: ask (the default) asks about everything that changes something;
auto-edit lets files within the roots be changed; full asks about nothing; read-only
lets nothing be changed. Questions come on the terminal; without one, what would be
asked is denied, and the denial says how to allow it. Rules name acts:
--allow 'bash(go test *)', --deny 'edit(secrets/**)', --allow 'fetch(https://go.dev/*)';
the others are read(FILES), search, mount and tool(NAME). bash, edit, read and fetch
alone are all of it.
The roots bind files, not commands: a command may do what you may.

With --self the model gets cordis_inspect, cordis_mount and cordis_unmount: it can see
the runtime that it runs in, and give itself tools. Grant that as deliberately as a
shell. What is mounted ends with the run.

Exit status: 0 completed; 1 failed, also at --timeout, --max-steps or --max-tokens;
2 usage; 3 the turn ended on a denial; 4 interrupted, by one signal.`

func newRun(s command.Streams) *cobra.Command {
	o := &runOptions{
		timeout:   command.Duration{Min: limits.RunTimeoutMin, Max: limits.RunTimeoutMax},
		maxSteps:  number{least: 1, most: math.MaxInt32, rule: "is a number from 1"},
		maxTokens: number{least: 1, rule: "is a number from 1"},
	}
	cmd := &cobra.Command{
		Use:   `run [flags] ["TASK"]`,
		Short: "Work on a task in this folder",
		Long:  runLong,
		Example: `  dsh run "find out why the tests fail, and mend it"
  dsh run --permission auto-edit --allow 'bash(go test *)' "add a test for Parse"
  dsh run --resume "now write the changelog"
  git diff | dsh run "review this change"
  git diff | dsh run --permission read-only --json - > events.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef("takes one task, got %s: put the task in quotes", count(len(args), "argument"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd.Context(), cmd.Flags(), args, s); err != nil {
				return err
			}
			return run(cmd.Context(), s, o)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

func (o *runOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.model, "model", "", "`provider/name`: deepseek, openai, anthropic, script (the name is a file), manual (you play the model) (default $DSH_MODEL, else the first provider that has a key)")
	f.StringVar(&o.effort, "effort", "", "how hard the model should think: a `level` that dsh models lists, or off (default the model's own)")
	f.StringVar(&o.session, "session", "", "the `id` of the session: letters, digits, . _ -, at most 64 (default a new one)")
	f.BoolVar(&o.resume, "resume", false, "go on with a session: that of --session, or the latest of this folder; without a task an interrupted turn goes on")
	f.StringVar(&o.cwd, "cwd", "", "the `folder` to work in (default the working directory; of a resumed session its own; another only where that has gone)")
	f.StringArrayVar(&o.roots, "root", nil, "`folder` whose files may be read and written; may be repeated (default --cwd, unless that is / or the home folder)")
	f.StringArrayVar(&o.readOnly, "read-only-root", nil, "`folder` whose files may only be read; may be repeated")
	f.BoolVar(&o.self, "self", false, "give the model the tools to see and change the runtime that it runs in")
	f.StringVar(&o.permission, "permission", "", "what may happen without being asked about: ask, auto-edit, full or read-only (default ask; of a resumed session its own)")
	f.StringArrayVar(&o.allow, "allow", nil, "`rule` for what is allowed without a question; may be repeated")
	f.StringArrayVar(&o.deny, "deny", nil, "`rule` for what is denied; beats --allow; may be repeated")
	f.BoolVar(&o.asJSON, "json", false, "print the session's events on standard output as they are logged, a JSON object a line")
	f.Var(&o.maxSteps, "max-steps", "end the turn after so many `steps` (requests to the model) (default no limit)")
	f.Var(&o.maxTokens, "max-tokens", "end when the session has used so many `tokens`, whatever they were for (default no limit)")
	f.Var(&o.timeout, "timeout", "end the turn after this time (default no limit)")
	f.Lookup("timeout").DefValue = ""
	f.StringArrayVar(&o.passEnv, "pass-env", nil, "environment `variable` that commands get although its name is that of a credential; may be repeated")
	f.BoolVar(&o.allowPrivate, "allow-private-web", false, "let web fetch private, loopback and link-local addresses too")
	o.layers.Flags(f)
	o.given = f
}

// check says what is wrong with the flags, and reads the task.
func (o *runOptions) check(ctx context.Context, f *pflag.FlagSet, args []string, s command.Streams) error {
	for _, name := range []string{"model", "effort", "session", "cwd", "permission"} {
		if f.Changed(name) && f.Lookup(name).Value.String() == "" {
			return command.Usagef("--%s needs a value, and got an empty one", name)
		}
	}
	if err := o.checkPolicy(f); err != nil {
		return err
	}
	if err := o.layers.Check(); err != nil {
		return err
	}
	if o.session != "" && !(o.resume && o.session == latest) {
		if err := checkID(o.session); err != nil {
			return err
		}
	}
	if err := command.CheckPassEnv(o.passEnv); err != nil {
		return err
	}
	for _, name := range o.passEnv {
		if slices.Contains(keys.Variables(providers.WithKey()...), name) {
			return command.Usagef("--pass-env %s: no command gets the key of a model provider", name)
		}
	}
	var err error
	if o.model != "" || !o.resume { // else that of the session, if it has one
		if o.config, err = chooseModel(o.model, os.Getenv("DSH_MODEL"), keyStore()); err != nil {
			return err
		}
	}
	return o.readTask(ctx, args, s)
}

func (o *runOptions) checkPolicy(f *pflag.FlagSet) (err error) {
	if f.Changed("permission") {
		if o.mode, err = command.ParseMode(o.permission); err != nil {
			return err
		}
	}
	o.rules.allow, o.rules.deny, err = command.ParseRules(o.allow, o.deny)
	return err
}

// readTask takes the task from the arguments, or from standard input.
func (o *runOptions) readTask(ctx context.Context, args []string, s command.Streams) error {
	switch {
	case len(args) == 1 && args[0] != "-":
		o.task = args[0]
	case len(args) == 0 && o.resume:
		return nil
	case len(args) == 0 && terminal.Is(s.In):
		return command.Usagef(`say the task: dsh run "…", or give it on standard input`)
	default:
		o.fromStdin = true
		text, err := readAll(ctx, s.In, limits.TaskText+1)
		if err != nil {
			return fmt.Errorf("read task: %w", err)
		}
		if len(text) > limits.TaskText {
			return command.Usagef("the task on standard input has more than %d bytes; name a file in it that the model can read", limits.TaskText)
		}
		o.task = string(bytes.TrimSpace(text))
	}
	switch {
	case strings.TrimSpace(o.task) == "":
		return command.Usagef(`the task is empty: dsh run "…", or give it on standard input`)
	case !utf8.ValidString(o.task):
		return command.Usagef("the task is not UTF-8 text")
	}
	if o.fromStdin || o.resume { // of an old session the model is not known yet
		return nil
	}
	return o.addPiped(ctx, s, limits.TaskWait)
}

// place finds the folder to work in, and what of it may be read and written.
func (o *runOptions) place(cwd string) (err error) {
	if o.cwd, err = folder(cwd); err != nil {
		return command.Usagef("--cwd: %w", err)
	}
	for _, list := range []struct {
		flag    string
		folders []string
	}{{"--root", o.roots}, {"--read-only-root", o.readOnly}} {
		for i, name := range list.folders {
			if list.folders[i], err = folder(name); err != nil {
				return command.Usagef("%s: %w", list.flag, err)
			}
		}
	}
	if o.implied = command.ImpliedRoots(o.cwd); len(o.implied)+len(o.roots)+len(o.readOnly) == 0 {
		return command.Usagef("the folder %s is too much to work in by default: give --cwd, or name it with --root", plain.Line(o.cwd, limits.Preview))
	}
	return o.putLayers()
}

// putLayers makes the flags that were given the last layer.
func (o *runOptions) putLayers() error {
	if o.self {
		if err := o.layers.Add(standard.Self()); err != nil {
			return err
		}
	}
	if o.given.Changed("pass-env") {
		if err := o.layers.Put("--pass-env", "bash", []string{"config", "passEnv"}, o.passEnv); err != nil {
			return err
		}
	}
	if o.given.Changed("allow-private-web") {
		if err := o.layers.Put("--allow-private-web", "web", []string{"config", "allowPrivate"}, o.allowPrivate); err != nil {
			return err
		}
	}
	return command.PutRoots(&o.layers, o.given, o.roots, o.readOnly)
}
