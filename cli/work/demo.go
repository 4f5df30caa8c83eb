package work

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/demo"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/providers"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
)

func newDemo(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent see, extend and repair the runtime that it runs in",
		Long: `Watch an agent see, extend and repair the runtime that it runs in. The model is
a script; everything else is what dsh run --self has. It needs no key and no
network, and takes about a second. The status is 0 only if every step did what
the script says. The session is kept, like that of every run; where there is no
place to keep it, it is not.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), s) },
	}
}

// runDemo plays the demonstration in a folder of its own. What is logged
// meanwhile, the mistakes of the script among it, is shown only if it fails.
func runDemo(ctx context.Context, s command.Streams) (err error) {
	log := new(logBuffer)
	defer func() {
		if err != nil {
			log.writeTo(s.Err)
		}
	}()
	dir, err := os.MkdirTemp("", "dsh-demo-*")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is a README
	if dir, err = folder(dir); err != nil {
		return err
	}
	if err := demo.Furnish(dir); err != nil {
		return err
	}
	w := &work{s: command.Streams{In: s.In, Out: s.Out, Err: log}, desk: &desk{}}
	defer func() { _ = w.end(ctx, &follower{}) }() // no events are printed
	kept, err := w.openDemo(ctx, dir)
	if err != nil {
		return err
	}
	if err := w.startDemo(ctx, dir); err != nil {
		return err
	}
	if err := demo.Play(ctx, s.Out, w.agent); err != nil {
		return err
	}
	if kept {
		return command.PrintText(s.Out, "Everything is in the log: dsh sessions show "+w.session.Meta().ID)
	}
	return nil
}

// openDemo makes the session, in memory where there is no place to keep it.
func (w *work) openDemo(ctx context.Context, dir string) (kept bool, err error) {
	meta := session.Meta{ID: "demo-" + freshID(), Cwd: dir}
	if disk, failed := store(); failed == nil {
		if w.session, err = disk.Create(ctx, meta); err == nil {
			return true, nil
		}
	}
	w.session, err = memory.New().Create(ctx, meta)
	return false, err
}

// startDemo composes the runtime and starts an agent that has the toolset alone.
func (w *work) startDemo(ctx context.Context, dir string) error {
	model, err := demo.Model()
	if err != nil {
		return err
	}
	models := &llm.Registry{}
	if _, err := models.Register(providers.Script, model); err != nil {
		return fmt.Errorf("provide the script: %w", err)
	}
	given := standard.Given{
		Program: command.Program, Cwd: dir, Roots: []string{dir}, Models: models,
		Toolset: selfmod.Config{Console: w.s.Err, Memory: mount.NewMemory()},
	}
	catalog := standard.Catalog(given)
	layers := &command.LayerOptions{}
	layers.Only() // each answer is checked: nothing of a person's own may change one
	w.running, err = layers.Start(ctx, w.s.Err, selfmod.Config{}.DrainLimit(), composition.Options{
		Sources: layers.Sources(standard.Demo()), Catalog: catalog,
		Sandbox: sandbox.Config{Exe: command.Program, Stderr: w.s.Err},
		Console: func(line string) { fmt.Fprintln(w.s.Err, line) },
	})
	if err != nil {
		return err
	}
	w.root = w.running.Root
	place, err := w.running.Place(ctx, dir)
	if err != nil {
		return err
	}
	agents, err := agent.Service.Use(w.root)
	if err != nil {
		return fmt.Errorf("find agents: %w", err)
	}
	w.agent, err = agents.Start(ctx, agent.Options{
		Session: w.session, Cwd: dir, Parent: place.Scope(),
		Model:   llm.Config{Provider: providers.Script, Model: "demo"},
		Plugins: []*cordis.Plugin{place.Plugin(catalog)},
	})
	return err
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// Close does nothing: whoever logs late may.
func (b *logBuffer) Close() error { return nil }

func (b *logBuffer) writeTo(w io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = w.Write(b.text.Bytes()) // nobody can be told
}
