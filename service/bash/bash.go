package bash

import (
	"context"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// Unconfined is what a program says at its start when plugins may use bash.
const Unconfined = "bash is available to plugins: a shell command can read and write whatever this user can; the roots of fs do not bind it"

// Bash runs commands for Go code. The context c owns what is started: it ends with c.
// See the package comment for errors.
type Bash interface {
	// Run runs a command and waits for its end. The end of ctx aborts it.
	Run(ctx context.Context, c *cordis.Context, command Command) (RunResult, error)
	// Start starts a command and returns while it runs; ctx bounds the start only.
	Start(ctx context.Context, c *cordis.Context, command Command) (Process, error)
	// Resolve checks a command and fills in the defaults. It runs nothing.
	Resolve(command Command) (Spec, error)
}

// hearKey is where a context carries who hears what a command writes.
type hearKey struct{}

// WithLive returns a context under which Run and Start tell hear what the command
// writes, as it comes: whole characters of stdout or stderr. It is called by a
// goroutine for each stream, until the command has ended (also after Start has
// returned). It must not keep the bytes; the command waits while it runs.
func WithLive(ctx context.Context, hear func(output []byte)) context.Context {
	return context.WithValue(ctx, hearKey{}, hear)
}

// ForPlugins runs shell commands. A command gets this program's environment
// without credentials, no terminal and no color, and is bound by no fs root. What
// it starts ends with it, or with your plugin.
type ForPlugins interface {
	// Run runs a command with bash -c and waits for its end. A failing command is a
	// result, not an error: check exitCode, which is null if a signal ended it, and
	// timedOut. What it leaves running in the background (cmd &) is ended with it:
	// use start for what has to go on. The end of your tool call aborts the command: a
	// tool that runs long commands needs a timeoutMs of its own.
	//
	// command is what to run, as text or with its settings;
	// options are settings, which win over those of command.
	//
	// Rejects with BASH_BAD_REQUEST, BASH_BAD_WORKDIR, BASH_DENIED, BASH_TOO_MANY, BASH_NO_SHELL or BASH_FAILED.
	Run(ctx context.Context, command Command, options *RunOptions) (RunResult, error)
	// Start starts a command and returns while it runs. It runs until it ends by itself,
	// kill() is called or your plugin ends; there is no time limit unless timeoutMs is given.
	//
	// command is what to run, as text or with its settings;
	// options are settings, which win over those of command.
	//
	// Rejects as run does.
	Start(ctx context.Context, command Command, options *RunOptions) (Process, error)
	// Resolve gives what run would do: the defaults filled in, the folder made absolute.
	// It runs nothing. What it returns can be given to run and start.
	//
	// command is what to resolve, as text or with its settings.
	//
	// Throws BASH_BAD_REQUEST, BASH_BAD_WORKDIR or BASH_NO_SHELL.
	Resolve(command Command) (Spec, error)
}

// Command is a command line, alone or with its settings.
//
//dsh:ts string | Request | Spec
type Command struct {
	Request
}

// Request is a command with its settings.
type Request struct {
	// Command is the command line, as bash -c reads it; at most 100000 bytes.
	Command string `json:"command"`
	// Workdir is the folder in which it runs; relative to the default, which is the
	// first root, or else the folder in which the program was started.
	Workdir string `json:"workdir,omitempty"`
	// TimeoutMs is when it is stopped, in milliseconds: 1 to 600000. Absent: 120000 for
	// run, no limit for start.
	TimeoutMs int `json:"timeoutMs,omitempty"`
	// StdoutMaxBytes is how much of the end of stdout comes back as text: 1 to 1000000,
	// default 64000. Of stderr it is always 64000.
	StdoutMaxBytes int `json:"stdoutMaxBytes,omitempty"`
	// Stdin is its standard input, then the end of the file; default empty. At most 16 MiB.
	Stdin string `json:"stdin,omitempty"`
	// Env is set on top of the environment.
	Env map[string]string `json:"env,omitempty"`
}

// RunOptions are settings of a command.
type RunOptions struct {
	// Workdir is the folder in which it runs; relative to the default, which is the
	// first root, or else the folder in which the program was started.
	Workdir *string `json:"workdir,omitempty"`
	// TimeoutMs is when it is stopped, in milliseconds: 1 to 600000. Absent: 120000 for
	// run, no limit for start.
	TimeoutMs *int `json:"timeoutMs,omitempty"`
	// StdoutMaxBytes is how much of the end of stdout comes back as text: 1 to 1000000,
	// default 64000. Of stderr it is always 64000.
	StdoutMaxBytes *int `json:"stdoutMaxBytes,omitempty"`
	// Stdin is its standard input, then the end of the file; default empty. At most 16 MiB.
	Stdin *string `json:"stdin,omitempty"`
	// Env is set on top of the environment.
	Env map[string]string `json:"env,omitempty"`
	// Signal aborts the command of run; for start it counts only until start has returned.
	Signal service.Signal `json:"signal,omitzero"`
}

// Spec is a resolved command.
type Spec struct {
	// Command is the command line.
	Command string `json:"command"`
	// Workdir is the folder in which it runs, absolute.
	Workdir string `json:"workdir"`
	// TimeoutMs is when it is stopped, in milliseconds.
	TimeoutMs int `json:"timeoutMs"`
	// StdoutMaxBytes is how much of the end of stdout comes back as text.
	StdoutMaxBytes int `json:"stdoutMaxBytes"`
	// Stdin is its standard input.
	Stdin string `json:"stdin,omitempty"`
	// Env is what is set on top of the environment.
	Env map[string]string `json:"env,omitempty"`
	// Shell is what reads the command line: bash, or sh where there is no bash.
	Shell string `json:"shell"`
}

// RunResult is what became of a command.
type RunResult struct {
	// ExitCode is null if a signal ended the shell, or it never ran.
	ExitCode *int `json:"exitCode"`
	// Signal is the name of that signal, such as SIGKILL.
	Signal *string `json:"signal"`
	// TimedOut says that it was stopped after timeoutMs.
	TimedOut bool `json:"timedOut"`
	// Aborted says that it was stopped by a signal of yours, kill(), or the end of the
	// call or plugin. Never true together with timedOut.
	Aborted bool `json:"aborted"`
	// TimeoutMs is the limit that it ran under; 0: none.
	TimeoutMs int `json:"timeoutMs"`
	// Stdout is its standard output.
	Stdout Stream `json:"stdout"`
	// Stderr is its standard error.
	Stderr Stream `json:"stderr"`
	// Shell is sh if there was no bash to run it.
	Shell string `json:"shell,omitempty"`
}

// Stream is what a command wrote to one of its streams.
type Stream struct {
	// Text is the output; its end, if it is truncated.
	Text string `json:"text"`
	// Truncated says that the beginning is missing from text.
	Truncated bool `json:"truncated"`
	// SpillPath is the file with the output from its beginning, up to 64 MiB, if it is
	// truncated. It is outside of the roots of fs: read it with a command, such as grep.
	// It lives until the plugin ends or 32 newer ones exist.
	SpillPath string `json:"spillPath,omitempty"`
	// Binary says that the output is not UTF-8 text: text holds U+FFFD for what is not.
	Binary bool `json:"binary,omitempty"`
}

// ProcessStatus is where a started command stands.
type ProcessStatus string

// The statuses. Killed is one that a signal ended, or that was stopped.
const (
	Running   ProcessStatus = "running"
	Completed ProcessStatus = "completed"
	Killed    ProcessStatus = "killed"
)

// Process is a started command.
type Process interface {
	// Status is running, completed, or killed: ended by a signal, kill() or its timeout.
	Status() ProcessStatus
	// ExitCode is null while it runs, and if a signal ended it.
	ExitCode() *int
	// Signal is the name of the signal that ended it, or null.
	Signal() *string
	// Done resolves when it has ended. It does not reject because the command failed.
	Done() service.Promise[RunResult]
	// ReadOutput gives what it wrote since the last call, without waiting.
	ReadOutput() (Output, error)
	// Kill stops it (SIGTERM, SIGKILL after 3 s) and returns at once: await done for its
	// end. False if it had ended.
	Kill() (bool, error)
}

// Output is what a started command wrote since the last look.
type Output struct {
	// Delta is what came on stdout and stderr, in the order in which it came.
	Delta string `json:"delta"`
	// Lossy says that more than 64000 bytes came, and delta holds only the last of them.
	Lossy bool `json:"lossy"`
	// StdoutSpillPath is the file with all of stdout, if that is longer than what is kept.
	StdoutSpillPath string `json:"stdoutSpillPath,omitempty"`
	// StderrSpillPath is the same of stderr.
	StderrSpillPath string `json:"stderrSpillPath,omitempty"`
}

// Run is a command that is about to start.
type Run struct {
	// Command is the command line.
	Command string `json:"command"`
	// Workdir is the folder in which it will run.
	Workdir string `json:"workdir"`
	// Background says that it comes from start, not from run.
	Background bool `json:"background"`
	// Env is what is set on top of the environment.
	Env map[string]string `json:"env,omitempty"`
	// By is the id of the mount that runs it, such as dyn-3; empty: the program itself.
	By string `json:"by"`
	// Stdin is its standard input. Plugins do not see it.
	Stdin string `json:"-"`
	// Shell is what reads the command line: bash, or sh. Plugins do not see it.
	Shell string `json:"-"`
}

// RunIntent asks whether a command of the model's tools or of a plugin may start.
// Its request has been checked. Deny makes run and start reject with BASH_DENIED
// and the reason; ask puts it to a person. Also asked for the commands of the
// listener's own plugin.
var RunIntent = cordis.NewWaterfall[Run, tool.Decision]("bash/run-intent", cordis.ForPlugins())

// Service is the key of the service; plugins that are mounted may inject it.
var Service = cordis.NewService[Bash]("bash", cordis.PluginInterface(func(v Bash, c *cordis.Context) ForPlugins {
	return bound{v, c}
}))

// bound is the service for one plugin.
type bound struct {
	bash Bash
	c    *cordis.Context
}

var _ ForPlugins = bound{}

func (b bound) Run(ctx context.Context, command Command, options *RunOptions) (RunResult, error) {
	return b.bash.Run(ctx, b.c, command.with(options))
}

func (b bound) Start(ctx context.Context, command Command, options *RunOptions) (Process, error) {
	return b.bash.Start(ctx, b.c, command.with(options))
}

func (b bound) Resolve(command Command) (Spec, error) { return b.bash.Resolve(command) }
