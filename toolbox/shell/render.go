package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

// renderCommand is what the model reads of a command.
func renderCommand(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v ran
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	if v.TaskID != "" {
		return []tool.Block{tool.TextBlock(started(v.TaskID))}, nil
	}
	return []tool.Block{tool.TextBlock(strings.Join(append(v.output(), v.markers()...), "\n"))}, nil
}

func started(id string) string {
	return fmt.Sprintf("started background task %s\nRead what it writes with task_output; end it with task_kill.", id)
}

// output is what the command wrote.
func (v ran) output() []string {
	var parts []string
	if out := strings.TrimRight(v.Stdout.Text, "\n"); out != "" {
		parts = append(parts, out)
	}
	if err := strings.TrimRight(v.Stderr.Text, "\n"); err != "" {
		parts = append(parts, "[stderr]", err)
	}
	if parts == nil {
		parts = []string{"(no output)"}
	}
	return parts
}

// markers are what else there is to know.
func (v ran) markers() []string {
	var m []string
	for _, s := range []struct {
		name string
		stream
	}{{"stdout", v.Stdout}, {"stderr", v.Stderr}} {
		if s.Truncated && s.File != "" {
			m = append(m, fmt.Sprintf("[%s is truncated: only its end is shown; all of it is in %s, which grep, head and tail can read]", s.name, s.File))
		} else if s.Truncated {
			m = append(m, fmt.Sprintf("[%s is truncated: only its end is shown, and the rest could not be kept; run it again with less output]", s.name))
		}
		if s.Binary {
			m = append(m, fmt.Sprintf("[%s is not text: what is not shows as \uFFFD]", s.name))
		}
	}
	if v.Shell != "" {
		m = append(m, fmt.Sprintf("[run by %s: there is no bash here]", v.Shell))
	}
	switch {
	case v.TimedOut:
		m = append(m, fmt.Sprintf("[timed out after %s and was stopped; give timeout_ms up to %d, or set run_in_background]",
			duration(time.Duration(v.TimeoutMs)*time.Millisecond), limits.BashTimeoutMax.Milliseconds()))
	case v.Aborted:
		m = append(m, "[stopped before it had ended]")
	case v.Signal != "":
		m = append(m, fmt.Sprintf("[killed by %s]", v.Signal))
	}
	if v.ExitCode != nil && *v.ExitCode != 0 {
		m = append(m, fmt.Sprintf("[exit code %d]", *v.ExitCode))
	}
	return m
}

// duration is a time for people: 350 ms, 12 s, 3 min 5 s.
func duration(d time.Duration) string {
	switch s := int(d.Round(time.Second).Seconds()); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	default:
		return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
	}
}

func presentCommand(_ context.Context, args lossless.Text) (*tool.Card, error) {
	var a commandArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return &tool.Card{Terminal: &tool.TerminalCard{Title: a.Command, Description: a.Description, Cwd: a.Workdir}}, nil
}

func presentRan(ctx context.Context, args lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError {
		return nil, nil
	}
	var v ran
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	text := "started background task " + v.TaskID
	if v.TaskID == "" {
		var parts []string
		for _, s := range []string{v.Stdout.Text, v.Stderr.Text} {
			if s = strings.TrimRight(s, "\n"); s != "" {
				parts = append(parts, s)
			}
		}
		text = strings.Join(parts, "\n")
	}
	return &tool.Card{Terminal: &tool.TerminalCard{Output: &text, ExitCode: v.ExitCode, Signal: v.Signal}}, nil
}
