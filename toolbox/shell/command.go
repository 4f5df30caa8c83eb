package shell

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/tool"
)

//go:embed bash.md
var bashText string

// kind is the kind of tasks that are commands.
const kind = "bash"

// commandArgs are the arguments of bash.
type commandArgs struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	TimeoutMs   *int   `json:"timeout_ms"`
	Background  bool   `json:"run_in_background"`
	Workdir     string `json:"workdir"`
}

// ran is the canonical value of bash.
type ran struct {
	Stdout    stream `json:"stdout"`
	Stderr    stream `json:"stderr"`
	ExitCode  *int   `json:"exit_code,omitempty"`
	Signal    string `json:"signal,omitempty"`
	TimedOut  bool   `json:"timed_out,omitempty"`
	Aborted   bool   `json:"aborted,omitempty"`
	TimeoutMs int    `json:"timeout_ms,omitempty"`
	Shell     string `json:"shell,omitempty"` // if it is not bash
	// TaskID is that of a command in the background; then nothing else is set.
	TaskID string `json:"task_id,omitempty"`
}

// stream is the output on one stream, or its end.
type stream struct {
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
	File      string `json:"file,omitempty"`
	Binary    bool   `json:"binary,omitempty"`
}

func (s *shell) bashTool() *tool.Definition {
	return &tool.Definition{
		Name: "bash", Title: "Run a command", Description: strings.TrimSpace(bashText), Kind: tool.KindExecute,
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("command", schema.String("The command line."), schema.Required),
			schema.Prop("description", schema.String("What it does, in 5 to 10 words, for the person who watches.")),
			schema.Prop("timeout_ms", schema.Integer(fmt.Sprintf("After how many milliseconds it is stopped, 1 to %d. Without it: %d, and no limit in the background.",
				limits.BashTimeoutMax.Milliseconds(), limits.BashTimeout.Milliseconds()))),
			schema.Prop("run_in_background", schema.Boolean("Return at once and let it run as a task.")),
			schema.Prop("workdir", schema.String("The folder in which it runs; a relative one is meant from the working directory.")),
		)))),
		Output:      tool.Output{Render: renderCommand, Schema: schema.Must(schema.Output(commandSchema()))},
		PresentCall: presentCommand, PresentResult: presentRan,
		Execute: s.execute,
	}
}

func commandSchema() lossless.Value {
	output := schema.Object(
		schema.Prop("text", schema.String("The output; its end, if it is truncated."), schema.Required),
		schema.Prop("truncated", schema.Boolean("Whether the beginning is missing.")),
		schema.Prop("file", schema.String("Where all of it is, if it is truncated.")),
		schema.Prop("binary", schema.Boolean("Whether it is not text.")),
	)
	return schema.Object(
		schema.Prop("stdout", output, schema.Required),
		schema.Prop("stderr", output, schema.Required),
		schema.Prop("exit_code", schema.Integer("Absent if a signal ended it, or it runs in the background.")),
		schema.Prop("signal", schema.String("The signal that ended it.")),
		schema.Prop("timed_out", schema.Boolean("Whether it was stopped because its time was up.")),
		schema.Prop("aborted", schema.Boolean("Whether it was stopped for another reason.")),
		schema.Prop("timeout_ms", schema.Integer("The time that it had.")),
		schema.Prop("shell", schema.String("What ran it, if that was not bash.")),
		schema.Prop("task_id", schema.String("The task that it is, if it runs in the background.")),
	)
}

func (s *shell) execute(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
	var a commandArgs
	if err := json.Unmarshal(exec.Arguments, &a); err != nil {
		return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
	}
	c := bash.Command{Request: bash.Request{Command: a.Command, Workdir: a.Workdir}}
	switch {
	case a.Workdir == "":
		c.Workdir = s.dir
	case s.dir != "" && !filepath.IsAbs(a.Workdir):
		c.Workdir = filepath.Join(s.dir, a.Workdir)
	}
	if strings.TrimSpace(a.Command) == "" {
		return tool.Outcome{}, errors.New("command is empty: give the command line to run")
	}
	if a.TimeoutMs != nil {
		most := limits.BashTimeoutMax.Milliseconds()
		if c.TimeoutMs = *a.TimeoutMs; c.TimeoutMs < 1 || int64(c.TimeoutMs) > most {
			return tool.Outcome{}, fmt.Errorf("timeout_ms is %d; it must be from 1 to %d. For what takes longer set run_in_background and leave timeout_ms out", c.TimeoutMs, most)
		}
	}
	if a.Background {
		return s.background(ctx, c)
	}
	l := &live{exec: exec}
	r, err := s.bash.Run(bash.WithLive(ctx, l.hear), s.c, c)
	l.end()
	if err != nil {
		return tool.Outcome{}, err
	}
	v := ran{
		Stdout: streamOf(r.Stdout), Stderr: streamOf(r.Stderr), ExitCode: r.ExitCode,
		TimedOut: r.TimedOut, Aborted: r.Aborted, TimeoutMs: r.TimeoutMs, Shell: r.Shell,
	}
	if r.Signal != nil {
		v.Signal = *r.Signal
	}
	return outcome(v)
}

func streamOf(s bash.Stream) stream {
	return stream{Text: s.Text, Truncated: s.Truncated, File: s.SpillPath, Binary: s.Binary}
}

// background starts a command as a task.
func (s *shell) background(ctx context.Context, c bash.Command) (tool.Outcome, error) {
	a := s.agentOf(ctx)
	info, err := s.tasks.Start(s.c, tasks.Task{
		Kind: kind, Label: c.Request.Command,
		Begin: func(out io.Writer) (tasks.Work, error) {
			p, err := s.bash.Start(bash.WithLive(ctx, func(b []byte) { _, _ = out.Write(b) }), s.c, c) // it never fails
			if err != nil {
				return nil, err
			}
			return process{p}, nil
		},
		Ended: func(info tasks.Info) { s.ended(a, info) },
	})
	if err != nil {
		return tool.Outcome{}, err
	}
	return outcome(ran{TaskID: info.ID})
}

// process is a command as the work of a task.
type process struct{ bash.Process }

var _ tasks.Work = process{}

// Wait implements tasks.Work.
func (p process) Wait(ctx context.Context) tasks.Ending {
	r, err := p.Done()(ctx)
	switch {
	case err != nil:
		return tasks.Ending{Status: tasks.Failed, Detail: "it was lost: " + err.Error()}
	case r.TimedOut:
		return tasks.Ending{Status: tasks.Killed, Detail: "timed out after " + duration(time.Duration(r.TimeoutMs)*time.Millisecond)}
	}
	detail := "exit code 0"
	switch {
	case r.Signal != nil:
		detail = *r.Signal
	case r.ExitCode != nil:
		detail = fmt.Sprintf("exit code %d", *r.ExitCode)
	}
	switch {
	case r.Aborted, r.Signal != nil:
		return tasks.Ending{Status: tasks.Killed, Detail: detail}
	case r.ExitCode != nil && *r.ExitCode != 0:
		return tasks.Ending{Status: tasks.Failed, Detail: detail}
	}
	return tasks.Ending{Status: tasks.Completed, Detail: detail}
}

// Kill implements tasks.Work.
func (p process) Kill() { _, _ = p.Process.Kill() } // it gives no error

// Files implements tasks.Work.
func (p process) Files() []string {
	o, err := p.ReadOutput()
	if err != nil {
		return nil
	}
	var files []string
	for _, f := range []string{o.StdoutSpillPath, o.StderrSpillPath} {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}
