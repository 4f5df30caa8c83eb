package files

import (
	"context"
	"errors"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// File is the code of a plugin file as it was read.
type File struct {
	// Path is how messages and reports name it: ./plugins/greet.js. Whoever shows
	// paths relative to something else than [Read] was given sets it.
	Path string
	// Dir is the folder in which the files are, as it was found.
	Dir string
	// Entry is the file of Files that is the module: greet.js, index.ts.
	Entry string
	// Files are the texts by their paths relative to Dir, with slashes.
	Files map[string]string
	// Hash is the SHA-256 of all of it but Path and Dir, in hexadecimal.
	Hash string
}

// Options are what a [Host] needs beside its context.
type Options struct {
	// Sandbox bounds the machines and their worker, as for temporary plugins.
	Sandbox  sandbox.Config
	Registry *tool.Registry
	// Console takes every printed line, tagged [cordis:PATH] and made safe for a
	// terminal. It must not block. Nil: lines are only kept for inspect.
	Console func(line string)
}

// Host runs plugin files in one worker.
type Host struct{}

// New returns a Host that ends with c's fiber. Its worker starts with the first file.
// The scope of c is that of its plugins; mount them below c.
func New(c *cordis.Context, o Options) (*Host, error) { return nil, errors.ErrUnsupported }

// Open loads the code in a new machine and gives the plugin that it exports, to be
// mounted once. Its Config takes nil or JSON (json.RawMessage, lossless.Text,
// lossless.Value, or what marshals to it).
func (h *Host) Open(ctx context.Context, f File) (*cordis.Plugin, error) {
	return nil, errors.ErrUnsupported
}

// Discard ends the machine of a plugin that is not going to be mounted. It does
// nothing for one that is.
func (h *Host) Discard(p *cordis.Plugin) {}

// MayTake says whether a plugin file may take the names that owner holds: those of
// a temporary plugin within the scope of the Host. It is for cordis.StageOptions.
func (h *Host) MayTake(owner *cordis.Fiber) bool { return false }

// Retired does the bookkeeping of temporary plugins whose names a plugin file took
// over: claimed is what the stage claimed, by names who took them ("./plugins/x.js").
// Call it after the commit. Other fibers are passed over.
func Retired(ctx context.Context, claimed []*cordis.Fiber, by string) {}

// Read reads one file (.js or .ts), or a folder with an index.js or index.ts.
func Read(path string) (File, error) { return File{}, errors.ErrUnsupported }
