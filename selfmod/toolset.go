package selfmod

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// Config bounds the toolset. A zero duration or number is its default in
// package limits; a value out of its range is refused when the plugin starts,
// naming it and the range.
type Config struct {
	VMTimeout      time.Duration // vmTimeoutMs: one entry inside the engine
	CallTimeout    time.Duration // callTimeoutMs: a whole entry
	MaxCallTimeout time.Duration // maxCallTimeoutMs: what a tool's timeoutMs may raise it to
	MemoryMB       int           // memoryMB: of one mount
	WorkerMemoryMB int           // workerMemoryMB: of the worker beyond its start

	// Audit takes one JSON line for each source before it runs; nil: nothing.
	Audit io.Writer
	// Console takes what mounts print, a line at a time; nil: nothing.
	Console io.Writer
	// Memory remembers what became of temporary plugins when the toolset is reloaded,
	// and goes on with their ids. The program has one; nil: nothing outlives the toolset.
	Memory *mount.Memory
	// Hidden says which tools a front door leaves out of its list, and why.
	Hidden func() map[string]string

	// Worker names the worker's executable and arguments; empty: this program.
	Worker     string
	WorkerArgs []string
}

// NewMemory returns an empty memory of temporary plugins, for Config.Memory.
func NewMemory() *mount.Memory { return mount.NewMemory() }

// drainGrace is what a drained call gets beyond its limit to hand its error over.
const drainGrace = 500 * time.Millisecond

// DrainLimit is what the toolset waits for running calls when it unloads a temporary
// plugin: as long as a call may take by itself, and a little. The runtime of who calls
// them should wait as long.
func (c Config) DrainLimit() time.Duration {
	return cmp.Or(c.CallTimeout, limits.CallTimeout) + drainGrace
}

// toolset is the running plugin.
type toolset struct {
	cfg      Config
	ctx      *cordis.Context
	registry *tool.Registry
	sandbox  *sandbox.Sandbox
	set      *mount.Set
}

// GroupName is the fiber whose children are the temporary plugins.
const GroupName = "cordis-dynamic"

// Plugin returns the toolset as a plugin. It injects tools and registers the
// three tools in the layer of the context that it is mounted in.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "tool-cordis",
		Inject: cordis.Require(tool.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			return (&toolset{cfg: cfg, ctx: c}).start()
		},
	}
}

func (t *toolset) start() error {
	var err error
	if t.registry, err = tool.Service.Use(t.ctx); err != nil {
		return err
	}
	t.sandbox, err = sandbox.New(sandbox.Config{
		Exe: t.cfg.Worker, Args: t.cfg.WorkerArgs,
		VMTimeout: t.cfg.VMTimeout, CallTimeout: t.cfg.CallTimeout, MaxCallTimeout: t.cfg.MaxCallTimeout,
		MemoryMB: t.cfg.MemoryMB, WorkerMemoryMB: t.cfg.WorkerMemoryMB,
	})
	if err != nil {
		return fmt.Errorf("start tool-cordis: %w", err)
	}
	// In this order, since it is undone in reverse.
	if _, err := t.ctx.Defer("sandbox", t.stop); err != nil {
		return err
	}
	if err := t.startGroup(); err != nil {
		return err
	}
	for _, d := range []*tool.Definition{t.inspectTool(), t.mountTool(), t.unmountTool()} {
		if _, err := t.registry.Register(t.ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the worker and waits for what the set still does.
func (t *toolset) stop(context.Context) error {
	t.sandbox.Close()
	if t.set != nil {
		t.set.Wait()
	}
	return nil
}

func (t *toolset) startGroup() error {
	group := &cordis.Plugin{Name: GroupName, Apply: func(c *cordis.Context, _ any) (err error) {
		t.set, err = mount.NewSet(c, mount.Config{
			Sandbox: t.sandbox, Registry: t.registry, Audit: t.audit(), Console: t.console(), Memory: t.cfg.Memory,
		})
		return err
	}}
	f, err := t.ctx.Drain(t.cfg.DrainLimit()).Mount(group, nil)
	if err != nil {
		return fmt.Errorf("start %s: %w", GroupName, err)
	}
	return f.Await(t.ctx.Context())
}

// audit writes one line for each source.
func (t *toolset) audit() func(id, source string) error {
	if t.cfg.Audit == nil {
		return nil
	}
	var mu sync.Mutex
	return func(id, source string) error {
		sum := sha256.Sum256([]byte(source))
		line, err := json.Marshal(struct {
			Time   time.Time `json:"time"`
			ID     string    `json:"id"`
			SHA256 string    `json:"sha256"`
			Source string    `json:"source"`
		}{time.Now().UTC(), id, hex.EncodeToString(sum[:]), source})
		if err != nil {
			return fmt.Errorf("write audit line: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if _, err := t.cfg.Audit.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("write audit line: %w", err)
		}
		return nil
	}
}

// consoleQueue is how many lines may wait for a slow reader of the console.
const consoleQueue = 1024

// console writes lines without ever blocking the one who prints: what a slow
// reader does not take is dropped.
func (t *toolset) console() func(string) {
	if t.cfg.Console == nil {
		return nil
	}
	lines := make(chan string, consoleQueue)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for line := range lines {
			_, _ = io.WriteString(t.cfg.Console, line+"\n") // nobody can be told
		}
	}()
	var mu sync.Mutex
	closed := false
	if _, err := t.ctx.Defer("console", func(ctx context.Context) error {
		mu.Lock()
		closed = true
		close(lines)
		mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		return nil
	}); err != nil {
		close(lines)
		return nil
	}
	return func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			return
		}
		select {
		case lines <- line:
		default:
		}
	}
}
