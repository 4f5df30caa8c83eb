package tasks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// List gives the tasks of a scope that run, and those that have ended and are
// remembered, in the order of their start.
func (r *Tasks) List(s *tool.Scope) []Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []Info{}
	if g := r.scopes[s]; g != nil {
		for _, t := range g.tasks {
			all = append(all, t.info)
		}
	}
	return all
}

// Get gives one task of a scope.
func (r *Tasks) Get(s *tool.Scope, id string) (Info, error) {
	t, err := r.find(s, id)
	if err != nil {
		return Info{}, err
	}
	return r.infoOf(t), nil
}

// Output gives what a task wrote since this was last called for it. It does not
// wait.
func (r *Tasks) Output(s *tool.Scope, id string) (Output, error) { return r.output(s, id, nil) }

// Kill tells a task to end and returns at once; false if it had ended.
func (r *Tasks) Kill(s *tool.Scope, id string) (bool, error) {
	t, err := r.find(s, id)
	if err != nil {
		return false, err
	}
	if r.infoOf(t).Status != Running {
		return false, nil
	}
	t.work.Kill()
	return true, nil
}

// Wait waits until a task has ended, and Ended has been called. When ctx ends
// first, the task is given as it is then, with the error of ctx.
func (r *Tasks) Wait(ctx context.Context, s *tool.Scope, id string) (Info, error) {
	t, err := r.find(s, id)
	if err != nil {
		return Info{}, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		err = fmt.Errorf("wait for task %s: %w", id, context.Cause(ctx))
	}
	return r.infoOf(t), err
}

// WaitOutput waits until there is something that Output gives, or the task has ended
// and Ended has been called. When ctx ends first, it returns the error of ctx.
func (r *Tasks) WaitOutput(ctx context.Context, s *tool.Scope, id string) error {
	t, err := r.find(s, id)
	if err != nil {
		return err
	}
	for {
		added, closed := t.out.more(nil)
		if added == nil && !closed {
			return nil
		}
		select {
		case <-added: // nil: it ends
		case <-t.done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("wait for output of task %s: %w", id, context.Cause(ctx))
		}
	}
}

func (r *Tasks) infoOf(t *task) Info {
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.info
}

func (r *Tasks) find(s *tool.Scope, id string) (*task, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.scopes[s]
	if g == nil || len(g.tasks) == 0 {
		return nil, fail(CodeUnknown, "there is no background task %q: there are none here", plain.Line(id, limits.Name))
	}
	if i := slices.IndexFunc(g.tasks, func(t *task) bool { return t.info.ID == id }); i >= 0 {
		return g.tasks[i], nil
	}
	var ids []string
	for _, t := range g.tasks {
		ids = append(ids, t.info.ID)
	}
	return nil, fail(CodeUnknown, "there is no background task %q; there are %s (of those that ended, the last %d are remembered)",
		plain.Line(id, limits.Name), strings.Join(ids, ", "), limits.TasksKept)
}

// output reads for one reader; nil is the program itself.
func (r *Tasks) output(s *tool.Scope, id string, reader *cordis.Fiber) (Output, error) {
	t, err := r.find(s, id)
	if err != nil {
		return Output{}, err
	}
	o := Output{Task: r.infoOf(t)}
	o.Text, o.More, o.Lost = t.out.take(reader)
	o.Files = t.work.Files()
	return o, nil
}
