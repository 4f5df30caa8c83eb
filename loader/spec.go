package loader

import (
	"context"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/settings"
	"github.com/dsh-go/dsh/tool"
)

// Plane says where a Go plugin lives.
type Plane int

// The planes.
const (
	Host  Plane = iota // once in a process, on the root context
	Agent              // once for each agent, on the agent's context
)

// String returns the plane's name.
func (p Plane) String() string {
	if p == Agent {
		return "agent"
	}
	return "host"
}

// Spec is one Go plugin that rows can name.
type Spec struct {
	Name string
	// Doc says what the plugin is for, in one to three sentences.
	Doc   string
	Plane Plane
	// Settings describe its config; nil: it takes none.
	Settings *settings.Type
	// Static says that a change of its row counts from the next start: the plugin holds
	// what must not end meanwhile.
	Static bool
	// PersonOnly says that no project may add it.
	PersonOnly bool
	// New makes the plugin of one row. config is what Settings.Check returned, nil where
	// there are none. Nothing starts before the plugin is mounted.
	New func(config any) (*cordis.Plugin, error)
}

// Catalog has the Go plugins that rows can name. It may be used from any goroutine.
type Catalog interface {
	Lookup(name string) (Spec, bool)
	// Names are all names, sorted.
	Names() []string
}

// Opener opens the plugin files that rows name.
type Opener interface {
	// Read reads the code that stands at an absolute path, a file or a folder, and runs
	// nothing of it.
	Read(path string) (Code, error)
}

// Code is the code of a plugin file as it was read.
type Code interface {
	// Hash tells whether two Codes of a path are the same.
	Hash() string
	// Open loads the code and gives its plugin, for one mount; its Config validates.
	Open(ctx context.Context) (*cordis.Plugin, error)
	// Discard lets go of a plugin that is not mounted after all.
	Discard(p *cordis.Plugin)
	// MayTake says whether the plugin may take the names of owner.
	MayTake(owner *cordis.Fiber) bool
	// Retired is told, after the swap, whose names were taken.
	Retired(claimed []*cordis.Fiber)
}

// Composition tells what became of rows. It is the service "composition".
type Composition interface {
	// Rows are the rows that concern a scope: the host's, its project's, its agent's, in
	// this order. Notices are what is wrong beside rows, such as a refused reload.
	Rows(s *tool.Scope) []RowInfo
	Notices(s *tool.Scope) []string
}

// Service is where inspect learns of rows. Mounted plugins may not inject it.
var Service = cordis.NewService[Composition]("composition")

// RowInfo is what is known of a row.
type RowInfo struct {
	ID   string
	Name string // of its plugin, as the row says it
	// Plugin is what the plugin calls itself; "" while the row is not mounted.
	Plugin string
	// State is that of its fiber, "running" for active; "disabled", "skipped" and
	// "group" where it has none.
	State string
	// Reason says why it is skipped or failed; "" where it is neither.
	Reason string
	// Waiting are the services that a pending row waits for.
	Waiting []string
	// Layer and Line say where the row stands.
	Layer string
	Line  int
	// Guards are the tools that it guards, "all" for all; Withheld says that they are
	// absent now.
	Guards   []string
	Withheld bool
	// Later says that its document says something else, which counts from the next start.
	Later bool
}

// Report is what a transaction did, by ids of rows in their order.
type Report struct {
	Mounted   []string // that were not there
	Remounted []string // that changed
	Removed   []string // also those that were disabled
	Later     []string // of Static plugins: what changed counts from the next start
	Troubles  []Trouble
}

// Changed says whether anything was mounted or removed.
func (r Report) Changed() bool { return len(r.Mounted)+len(r.Remounted)+len(r.Removed) > 0 }

// Trouble is a row that is left out, or that does not run yet.
type Trouble struct {
	ID  string
	Err error // names the row, its plugin and its place
}
