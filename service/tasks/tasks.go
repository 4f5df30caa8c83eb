package tasks

import (
	"context"
	"fmt"
	"io"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

// The codes of errors.
const (
	CodeUnknown = "TASKS_UNKNOWN"  // there is no task of the id in the scope
	CodeTooMany = "TASKS_TOO_MANY" // as many run as may
	CodeClosed  = "TASKS_CLOSED"   // the service, or the owner, is ending
)

// Status is where a task stands.
//
//dsh:name TaskStatus
type Status string

// The statuses. Failed is a task that ended by itself, and says that it did not
// do what it should.
const (
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Killed    Status = "killed"
)

// Info is what is known of a task.
//
//dsh:name TaskInfo
type Info struct {
	// ID names the task in its session: t1.
	ID string `json:"id"`
	// Kind is what sort of work it is, such as bash.
	Kind string `json:"kind"`
	// Label says in a line what it does, such as the command.
	Label string `json:"label"`
	// Status is running, completed, failed or killed.
	Status Status `json:"status"`
	// Detail says how it ended, such as exit code 1; empty while it runs.
	Detail string `json:"detail,omitempty"`
	// StartedAt is when it was started, in milliseconds since 1970.
	StartedAt int64 `json:"startedAt"`
	// EndedAt is when it ended, in milliseconds since 1970; absent while it runs.
	EndedAt int64 `json:"endedAt,omitempty"`
}

// Output is what a task wrote since its reader last looked.
//
//dsh:name TaskOutput
type Output struct {
	// Task is the task, as it was just before its output was read.
	Task Info `json:"task"`
	// Text is the output; the oldest part, if there is more.
	Text string `json:"text"`
	// More is how many bytes are left to read at once.
	More int `json:"more,omitempty"`
	// Lost is how many bytes before text are gone, because nobody read them in time.
	Lost int64 `json:"lost,omitempty"`
	// Files hold the output from its beginning, if it became long.
	Files []string `json:"files,omitempty"`
}

// Task is what Start starts.
type Task struct {
	// Kind is what sort of work it is: a word.
	Kind string
	// Label says in a line what it does; made one line and cut at limits.TaskLabel.
	Label string
	// Begin starts the work and returns while it runs. What is written to out, by
	// any goroutine, until the work has ended, is the task's output; a write never
	// waits and never fails.
	Begin func(out io.Writer) (Work, error)
	// Ended, if there is one, is called once, on the task's goroutine, when the task
	// has ended and before anybody who waits for it is told; not when it ended
	// because its owner did. The owner's unload waits for it, so it must not wait
	// for the owner.
	Ended func(Info)
}

// Work is what runs behind a task. Its methods may be called by any goroutine.
type Work interface {
	// Wait returns when the work has ended, for whatever reason. It is called once.
	// Its context ends when the work was told to end and did not.
	Wait(ctx context.Context) Ending
	// Kill tells the work to end, and returns at once. It may be called more than
	// once, and after the end.
	Kill()
	// Files are where the output is kept from its beginning, if it is kept.
	Files() []string
}

// Ending is how work ended.
type Ending struct {
	// Status is Completed, Failed or Killed; anything else counts as Failed.
	Status Status
	// Detail says how, in a few words: exit code 1.
	Detail string
}

// ForPlugins shows the background tasks of your own session, such as commands
// that the model started with run_in_background, and can kill them. Tasks are
// started by tools of the program alone.
type ForPlugins interface {
	// List gives the tasks that run, and the last of those that have ended, in the
	// order in which they were started.
	List() []Info
	// Output gives what a task wrote since your plugin last asked; the first time,
	// what is still kept. It does not wait, and takes nothing away from the model.
	// TASKS_UNKNOWN: there is no task of that id.
	//
	//   - id: such as t1.
	Output(id string) (Output, error)
	// Kill tells a task to end and returns at once; false if it had ended. The
	// model is told when the task has ended. TASKS_UNKNOWN: there is no task of
	// that id.
	//
	//   - id: such as t1.
	Kill(id string) (bool, error)
}

// Service is the key of the service; plugins that are mounted may inject it.
var Service = cordis.NewService[*Tasks]("tasks", cordis.PluginInterface(func(t *Tasks, c *cordis.Context) ForPlugins {
	return plugins{t, c}
}))

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name:     "tasks",
		Provides: []string{Service.Name()},
		Apply: func(c *cordis.Context, _ any) error {
			t := newTasks()
			if _, err := c.Defer("tasks", t.close); err != nil {
				return fmt.Errorf("provide tasks: %w", err)
			}
			if _, err := Service.Provide(c, t); err != nil {
				return fmt.Errorf("provide tasks: %w", err)
			}
			return nil
		},
	}
}

// plugins is the service for the plugin of one context.
type plugins struct {
	tasks *Tasks
	c     *cordis.Context
}

var _ ForPlugins = plugins{}

// List implements ForPlugins.
func (p plugins) List() []Info { return p.tasks.List(tool.ScopeOf(p.c)) }

// Output implements ForPlugins.
func (p plugins) Output(id string) (Output, error) {
	return p.tasks.output(tool.ScopeOf(p.c), id, p.c.Fiber())
}

// Kill implements ForPlugins.
func (p plugins) Kill(id string) (bool, error) { return p.tasks.Kill(tool.ScopeOf(p.c), id) }
