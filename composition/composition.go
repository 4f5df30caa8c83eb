package composition

import (
	"context"
	"errors"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

// ErrSkeleton is gone with the first working version.
var errSkeleton = errors.New("not composed yet")

// Composition is what runs of the documents.
type Composition struct{ root *cordis.Context }

// Place is a folder that sessions work in.
type Place struct{ scope *tool.Scope }

// Reload reads the documents and the plugin files anew, and takes over what changed.
func (c *Composition) Reload(context.Context) error { return errSkeleton }

// Place finds the project of a folder and mounts it, once.
func (c *Composition) Place(context.Context, string) (*Place, error) { return nil, errSkeleton }

// Scope is what an agent of the place has as its parent; nil: the global one.
func (p *Place) Scope() *tool.Scope { return p.scope }
