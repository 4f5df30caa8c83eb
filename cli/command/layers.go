package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/service/fs"
)

// LayerOptions are the flags of everything that is composed of cordis.yml documents.
type LayerOptions struct {
	config, set  []string
	safe         bool
	trustProject bool
	added        []*document.Document // before sets
	flags        []*document.Document
	rows         []string // that the flags are about
	sets         []*document.Document
}

// Flags adds the flags.
func (o *LayerOptions) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.config, "config", nil, "`file` of rows, as cordis.yml has them, beside your own and the project's; may be repeated, later ones override")
	f.StringArrayVar(&o.set, "set", nil, "`id.config.path=value` of a row, such as permission.config.mode=full; may be repeated, beats every file")
	f.BoolVar(&o.safe, "safe", false, "start with built-in plugins only: no cordis.yml, no plugin files, no --config and no --set")
	f.BoolVar(&o.trustProject, "trust-project", false, "trust the project's cordis.yml and plugin files, and their edits, for this run")
}

// Check says what is wrong with the flags.
func (o *LayerOptions) Check() error {
	if o.safe && len(o.config)+len(o.set) > 0 {
		return Usagef("--safe starts without --config and --set: leave one of them out")
	}
	for i, name := range o.config {
		if name == "" {
			return Usagef("--config needs the name of a file, and got an empty one")
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("find file of --config: %w", err)
		}
		if _, err := os.Stat(abs); err != nil {
			return Usagef("--config: %w", err)
		}
		o.config[i] = abs
	}
	o.sets = nil
	for _, arg := range o.set {
		doc, faults := document.ParseSet(arg)
		if len(faults) > 0 {
			return AsUsage(faults)
		}
		o.sets = append(o.sets, doc)
	}
	return nil
}

// Put makes the value of another flag a part of the last layer. The row has to be
// there.
func (o *LayerOptions) Put(flag, row string, path []string, value any) error {
	v, err := lossless.From(value)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	o.flags = append(o.flags, document.Flag(flag, row, path, v))
	o.rows = append(o.rows, row)
	return nil
}

// Only leaves out every layer but the built-in one and those of the program.
func (o *LayerOptions) Only() { o.safe = true }

// Add makes a layer of the program a part of the last ones, before --set, which can
// change its rows.
func (o *LayerOptions) Add(layer document.Layer) error {
	doc, faults := document.Parse(layer)
	if len(faults) > 0 {
		return faults // a mistake of the program
	}
	o.added = append(o.added, doc)
	return nil
}

// Sources are the layers of the flags, over a built-in composition.
func (o *LayerOptions) Sources(builtin document.Layer) composition.Sources {
	return composition.Sources{
		Home: fs.Home(), Builtin: builtin, Elsewhere: standard.Elsewhere, Config: o.config, Safe: o.safe,
		Set: slices.Concat(o.added, o.sets, o.flags),
	}
}

// Running is a runtime that is composed of documents.
type Running struct {
	Root *cordis.Context
	*composition.Composition
	messages io.Writer
	deaf     func(context.Context) // ends the listening to SIGHUP
}

// Start starts a runtime of the layers. Its log and what it tells the person go to
// messages. A call may take drain when its plugin is unloaded. Where a document that
// the person named is wrong the error is one of usage. Where it fails, nothing of it
// goes on.
func (o *LayerOptions) Start(ctx context.Context, messages io.Writer, drain time.Duration, c composition.Options) (_ *Running, err error) {
	r := &Running{messages: messages, deaf: func(context.Context) {}}
	if r.Root, err = runtimeOf(messages, drain); err != nil {
		return nil, err
	}
	c.TrustProject, c.Env = o.trustProject, os.LookupEnv
	if c.Tell == nil {
		c.Tell = func(text string) { fmt.Fprintln(messages, "dsh: "+plain.Terminal(text)) }
	}
	r.Composition, err = composition.Start(ctx, r.Root, c)
	if err != nil {
		Stop(r.Root, messages)
		var faults document.Faults
		if errors.As(err, &faults) {
			return nil, AsUsage(faults)
		}
		return nil, err
	}
	for _, row := range o.rows { // what a person asked for by a flag is no row to go without
		if err := r.Fault(row); err != nil {
			r.Stop()
			return nil, fmt.Errorf("start %s: %w", row, err)
		}
	}
	if c.Watch {
		r.deaf = OnHangup(ctx, func(ctx context.Context) { _ = r.Reload(ctx) }) // it is told
	}
	return r, nil
}

// Place is that of the composition. Where a project's document keeps its guards from
// being read the error is one of usage.
func (r *Running) Place(ctx context.Context, cwd string) (*composition.Place, error) {
	p, err := r.Composition.Place(ctx, cwd)
	if faults := (document.Faults{}); errors.As(err, &faults) {
		return nil, AsUsage(err)
	}
	return p, err
}

// graceForReload is what a reload that runs gets of limits.Shutdown to give up.
const graceForReload = 250 * time.Millisecond

// Still ends the following of files and signals. A reload that goes on is left to the
// end of the runtime.
func (r *Running) Still() {
	ctx, cancel := context.WithTimeout(context.Background(), graceForReload)
	defer cancel()
	r.deaf(ctx)
	_ = r.Close(ctx) // what hangs is named with the plugins
}

// Stop ends the runtime.
func (r *Running) Stop() {
	r.Still()
	Stop(r.Root, r.messages)
}

// AddConfig adds files as --config does.
func (o *LayerOptions) AddConfig(names ...string) { o.config = append(o.config, names...) }

// TrustsProject says whether --trust-project is given.
func (o *LayerOptions) TrustsProject() bool { return o.trustProject }
