package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cordis"
)

// graceForPlugins is what the plugins get of limits.Shutdown after the front door
// has used its own part: commands, limits.BashLost to end by themselves.
const graceForPlugins = 750 * time.Millisecond

// logNameWidth is the width of the column of names in the log.
const logNameWidth = 16

// Compose starts a runtime with the plugins, all active when it returns. Its log
// goes to messages. A call may take drain when its plugin is unloaded. Where it
// fails, nothing of it goes on.
func Compose(ctx context.Context, messages io.Writer, drain time.Duration, plugins []*cordis.Plugin) (_ *cordis.Context, err error) {
	root, err := runtimeOf(messages, drain)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			Stop(root, messages)
		}
	}()
	fibers := make([]*cordis.Fiber, len(plugins))
	for i, p := range plugins {
		fiber, err := root.Mount(p, nil)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Name, err)
		}
		fibers[i] = fiber
	}
	// Twice: one that waits for a later one runs only then.
	for _, f := range append(fibers, fibers...) {
		if err := f.Await(ctx); err != nil {
			return nil, fmt.Errorf("start %s: %w", f.Name(), err)
		}
	}
	for _, f := range fibers {
		if f.State() != cordis.Active {
			return nil, fmt.Errorf("start %s: it is %s: %s", f.Name(), f.State(), waiting(f))
		}
	}
	return root, nil
}

// runtimeOf starts a runtime with a log and nothing else.
func runtimeOf(messages io.Writer, drain time.Duration) (*cordis.Context, error) {
	root := cordis.New(cordis.WithDrainLimit(drain))
	if _, err := root.Export(cordis.Exporter{Level: slog.LevelWarn, Export: cordis.NewConsole(messages, logNameWidth)}); err != nil {
		return nil, fmt.Errorf("start log: %w", err)
	}
	return root, nil
}

// waiting says what a plugin waits for.
func waiting(f *cordis.Fiber) string {
	w := f.Waiting()
	var names []string
	for _, m := range w.Missing {
		names = append(names, "the service "+m.Name+" is missing ("+m.Reason+")")
	}
	if len(w.Cycle) > 0 {
		names = append(names, fmt.Sprintf("a cycle: %q", w.Cycle))
	}
	return strings.Join(names, "; ")
}

// Stop ends the plugins of a runtime.
func Stop(root *cordis.Context, messages io.Writer) {
	StopBy(root, messages, time.Now().Add(graceForPlugins))
}

// StopBy ends the plugins of a runtime until a time. What has not ended then is named
// in a message; it ends with the program.
func StopBy(root *cordis.Context, messages io.Writer, by time.Time) {
	end, cancel := context.WithDeadline(context.Background(), by)
	defer cancel()
	_, err := root.Fiber().Dispose(end)
	if err == nil {
		return
	}
	what := List(Hanging(root.Fiber()))
	switch {
	case end.Err() == nil:
		fmt.Fprintf(messages, "dsh: stop plugins: %v\n", err)
	case what != "": // else the last of it has ended meanwhile
		fmt.Fprintf(messages, "dsh: this did not end when it was told to, and is killed with dsh: %s\n", what)
	}
}
