package shell

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/tool"
)

var (
	//go:embed task_output.md
	outputText string
	//go:embed task_list.md
	listText string
	//go:embed task_kill.md
	killText string
)

// taskArgs are the arguments of the tools of tasks.
type taskArgs struct {
	ID     string `json:"task_id"`
	WaitMs int    `json:"wait_ms"`
}

// taskValue is a task in the canonical values.
type taskValue struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Label  string `json:"label"`
	Status string `json:"status"`
	Detail string `json:"detail"`
	RanMs  int64  `json:"ran_ms"`
}

func valueOf(i tasks.Info, now time.Time) taskValue {
	until := i.EndedAt
	if i.Status == tasks.Running {
		until = now.UnixMilli()
	}
	return taskValue{ID: i.ID, Kind: i.Kind, Label: i.Label, Status: string(i.Status), Detail: i.Detail, RanMs: max(0, until-i.StartedAt)}
}

// properties are those of taskValue, and further ones.
func properties(more ...schema.Property) lossless.Value {
	return schema.Object(append([]schema.Property{
		schema.Prop("id", schema.String("Names the task."), schema.Required),
		schema.Prop("kind", schema.String("What sort of work it is."), schema.Required),
		schema.Prop("label", schema.String("What it does."), schema.Required),
		schema.Prop("status", schema.Enum("Where it stands.", string(tasks.Running), string(tasks.Completed), string(tasks.Failed), string(tasks.Killed)), schema.Required),
		schema.Prop("detail", schema.String("How it ended."), schema.Required),
		schema.Prop("ran_ms", schema.Integer("How long it has run."), schema.Required),
	}, more...)...)
}

// state is where a task stands, in words: running for 12 s; failed, exit code 1, after 3 s.
func (v taskValue) state() string {
	ran := duration(time.Duration(v.RanMs) * time.Millisecond)
	if v.Status == string(tasks.Running) {
		return "running for " + ran
	}
	if v.Detail == "" {
		return v.Status + " after " + ran
	}
	return v.Status + ", " + plain.Line(v.Detail, limits.TaskDetail) + ", after " + ran
}

func (v taskValue) line() string {
	return fmt.Sprintf("%s (%s): %s", v.ID, v.state(), plain.Line(v.Label, limits.TaskLabel))
}

// notice is what an agent is told of the end of a task.
func notice(i tasks.Info) string {
	return fmt.Sprintf("Background task %s has ended (%s): %s\nRead the rest of its output with task_output.",
		i.ID, valueOf(i, time.Time{}).state(), i.Label)
}

func readTask(args lossless.Text) (a taskArgs, err error) {
	if err := json.Unmarshal(args, &a); err != nil {
		return a, fmt.Errorf("read arguments: %w", err)
	}
	return a, nil
}

// taskOutput is the canonical value of task_output.
type taskOutput struct {
	taskValue
	Text  string   `json:"text"`
	More  int      `json:"more,omitempty"`
	Lost  int64    `json:"lost,omitempty"`
	Files []string `json:"files,omitempty"`
}

func (s *shell) outputTool() *tool.Definition {
	yes := true
	no := false
	return &tool.Definition{
		Name: "task_output", Title: "Read a task's output", Description: strings.TrimSpace(outputText), Kind: tool.KindRead,
		Annotations: &tool.Annotations{ReadOnly: &yes, Idempotent: &no, OpenWorld: &no},
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("task_id", schema.String("The id of the task, such as t1."), schema.Required),
			schema.Prop("wait_ms", schema.Integer(fmt.Sprintf("How many milliseconds to wait, at most, for new output or the end, 0 to %d.", limits.ShellWaitMax.Milliseconds())),
				schema.Default(lossless.Int(0))),
		)))),
		Output: tool.Output{Render: renderOutput, Schema: schema.Must(schema.Output(properties(
			schema.Prop("text", schema.String("What it wrote since it was last read."), schema.Required),
			schema.Prop("more", schema.Integer("Bytes that are there already and were not shown.")),
			schema.Prop("lost", schema.Integer("Bytes before text that are gone.")),
			schema.Prop("files", schema.Array("Where all of the output is.", schema.String(""))),
		)))},
		ConcurrencySafe: func(context.Context, lossless.Text) bool { return true },
		PresentCall:     presentTask("Read the output of task ", tool.KindRead),
		PresentResult:   presentOutput,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			a, err := readTask(exec.Arguments)
			if err != nil {
				return tool.Outcome{}, err
			}
			if most := limits.ShellWaitMax.Milliseconds(); a.WaitMs < 0 || int64(a.WaitMs) > most {
				return tool.Outcome{}, fmt.Errorf("wait_ms is %d; it must be from 0 to %d", a.WaitMs, most)
			}
			if err := s.await(ctx, a.ID, time.Duration(a.WaitMs)*time.Millisecond, s.news); err != nil {
				return tool.Outcome{}, err
			}
			o, err := s.tasks.Output(s.scope, a.ID)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(taskOutput{valueOf(o.Task, time.Now()), o.Text, o.More, o.Lost, o.Files})
		},
	}
}

// news waits for new output of a task, and a moment for what comes with it, or for
// the end. Whatever it finds is looked at afterwards.
func (s *shell) news(ctx context.Context, id string) {
	if err := s.tasks.WaitOutput(ctx, s.scope, id); err != nil {
		return
	}
	moment, cancel := context.WithTimeout(ctx, limits.ShellLive)
	defer cancel()
	_, _ = s.tasks.Wait(moment, s.scope, id)
}

// await waits for a task that runs with wait, at most for limit. That the time is up
// is no error. The caller tells the end, unless ctx has ended.
func (s *shell) await(ctx context.Context, id string, limit time.Duration, wait func(context.Context, string)) error {
	info, err := s.tasks.Get(s.scope, id)
	if err != nil || info.Status != tasks.Running || limit == 0 {
		return err
	}
	s.watch(id)
	in, cancel := context.WithTimeout(ctx, limit)
	wait(in, id)
	cancel()
	s.unwatch(id)
	if ctx.Err() == nil {
		return nil
	}
	if info, err := s.tasks.Get(s.scope, id); err == nil && info.Status != tasks.Running {
		s.ended(s.agentOf(ctx), info) // nobody reads this call's answer
	}
	return context.Cause(ctx)
}

func renderOutput(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v taskOutput
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	parts := []string{"Task " + v.line(), ""}
	if v.Lost > 0 {
		parts = append(parts, fmt.Sprintf("[%d bytes before this were not read in time and are gone]", v.Lost))
	}
	if text := strings.TrimRight(v.Text, "\n"); text != "" {
		parts = append(parts, text)
	} else {
		parts = append(parts, "(no new output)")
	}
	if v.More > 0 {
		parts = append(parts, fmt.Sprintf("[%d more bytes are there already: call task_output again]", v.More))
	}
	if len(v.Files) > 0 && (v.Lost > 0 || v.More > 0) {
		parts = append(parts, "[all of the output is in "+strings.Join(v.Files, " and ")+", which grep, head and tail can read]")
	}
	return []tool.Block{tool.TextBlock(strings.Join(parts, "\n"))}, nil
}

func presentTask(title string, k tool.Kind) func(context.Context, lossless.Text) (*tool.Card, error) {
	return func(_ context.Context, args lossless.Text) (*tool.Card, error) {
		a, err := readTask(args)
		if err != nil {
			return nil, err
		}
		return &tool.Card{Generic: &tool.GenericCard{Title: title + plain.Line(a.ID, limits.Name), Kind: k}}, nil
	}
}

func presentOutput(_ context.Context, _ lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError {
		return nil, nil
	}
	var v taskOutput
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	return &tool.Card{Terminal: &tool.TerminalCard{Output: &v.Text}}, nil
}

// taskList is the canonical value of task_list.
type taskList struct {
	Tasks []taskValue `json:"tasks"`
}

func (s *shell) listTool() *tool.Definition {
	return &tool.Definition{
		Name: "task_list", Title: "List tasks", Description: strings.TrimSpace(listText), Kind: tool.KindRead,
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object()))),
		Output: tool.Output{Render: renderList, Schema: schema.Must(schema.Output(schema.Object(
			schema.Prop("tasks", schema.Array("The tasks, in the order of their start.", properties()), schema.Required),
		)))},
		ConcurrencySafe: func(context.Context, lossless.Text) bool { return true },
		PresentCall: func(context.Context, lossless.Text) (*tool.Card, error) {
			return &tool.Card{Generic: &tool.GenericCard{Title: "List background tasks", Kind: tool.KindRead}}, nil
		},
		Execute: func(context.Context, *tool.Exec) (tool.Outcome, error) {
			v, now := taskList{Tasks: []taskValue{}}, time.Now()
			for _, i := range s.tasks.List(s.scope) {
				v.Tasks = append(v.Tasks, valueOf(i, now))
			}
			return outcome(v)
		},
	}
}

func renderList(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v taskList
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	lines := []string{"No background tasks."}
	if len(v.Tasks) > 0 {
		lines = nil
	}
	for _, t := range v.Tasks {
		lines = append(lines, t.line())
	}
	return []tool.Block{tool.TextBlock(strings.Join(lines, "\n"))}, nil
}

// taskKilled is the canonical value of task_kill.
type taskKilled struct {
	taskValue
	HadEnded bool `json:"had_ended"`
}

func (s *shell) killTool() *tool.Definition {
	return &tool.Definition{
		Name: "task_kill", Title: "Kill a task", Description: strings.TrimSpace(killText), Kind: tool.KindExecute,
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("task_id", schema.String("The id of the task, such as t1."), schema.Required),
		)))),
		Output: tool.Output{Render: renderKill, Schema: schema.Must(schema.Output(properties(
			schema.Prop("had_ended", schema.Boolean("Whether it had ended before."), schema.Required),
		)))},
		// What follows it in a step sees the task ended, so it does not overlap.
		ConcurrencySafe: func(context.Context, lossless.Text) bool { return false },
		PresentCall:     presentTask("Kill task ", tool.KindExecute),
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			a, err := readTask(exec.Arguments)
			if err != nil {
				return tool.Outcome{}, err
			}
			had := true
			kill := func(ctx context.Context, id string) {
				killed, err := s.tasks.Kill(s.scope, id)
				had = err != nil || !killed
				_, _ = s.tasks.Wait(ctx, s.scope, id) // whatever it is, it is looked at below
			}
			if err := s.await(ctx, a.ID, limits.ShellKillWait, kill); err != nil {
				return tool.Outcome{}, err
			}
			info, err := s.tasks.Get(s.scope, a.ID)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(taskKilled{valueOf(info, time.Now()), had})
		},
	}
}

func renderKill(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v taskKilled
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	var text string
	switch {
	case v.HadEnded:
		text = "It had ended before.\nTask " + v.line()
	case v.Status == string(tasks.Running):
		text = "It was told to end and has not ended yet: you will be told when it has.\nTask " + v.line()
	default:
		text = "Task " + v.line()
	}
	return []tool.Block{tool.TextBlock(text)}, nil
}
