package reference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/gen/surface"
	"github.com/dsh-go/dsh/plugins/standard"
)

// Command is what makes generated files current.
const Command = "go generate ./..."

// ErrStale says that a generated file is not what the source gives.
var ErrStale = errors.New("generated files are stale")

// Root finds the root of the module from the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find module: there is no go.mod above the working directory")
		}
		dir = up
	}
}

// Generate makes all files in memory, by their names from the root. It replaces
// the catalog of this process, for the reports that the pages measure.
func Generate(ctx context.Context, root string) (map[string][]byte, error) {
	s, err := surface.Read(surface.Config{Dir: root})
	if err != nil {
		return nil, err
	}
	text, err := Catalog(s, Verbs)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		"selfmod/catalog/generated.go": text,
		"docs/reference/services.md":   []byte(servicesPage(s)),
		"docs/reference/events.md":     []byte(eventsPage(s)),
		"docs/reference/types.md":      []byte(typesPage(s)),
		"docs/reference/dsh.d.ts":      []byte(declarations(s)),
	}
	config, err := configPage(root, s)
	if err != nil {
		return nil, err
	}
	files["docs/reference/config.md"] = []byte(config)
	if files["docs/reference/cordis.schema.json"], err = cordisSchema(standard.Catalog(standard.Given{})); err != nil {
		return nil, err
	}
	return files, livePages(ctx, root, s, files)
}

// livePages adds the pages that ask a running toolset.
func livePages(ctx context.Context, root string, s *surface.Surface, files map[string][]byte) (err error) {
	l, err := start(ctx, root, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.stop(ctx)) }()
	tools, err := l.toolsPage()
	if err != nil {
		return err
	}
	toolset, err := l.toolsetPage(ctx, s)
	if err != nil {
		return err
	}
	files["docs/reference/tools.md"] = []byte(tools)
	files["docs/reference/toolset.md"] = []byte(toolset)
	return nil
}

// Write brings the files of the module that holds the working directory up to date.
func Write(ctx context.Context) error {
	root, err := Root()
	if err != nil {
		return err
	}
	files, err := Generate(ctx, root)
	if err != nil {
		return err
	}
	return write(root, files)
}

func write(root string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, files[name]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// Check compares the files with what the source gives; it wraps ErrStale and
// names the files.
func Check(ctx context.Context, root string) error {
	files, err := Generate(ctx, root)
	if err != nil {
		return err
	}
	return compare(root, files)
}

func compare(root string, files map[string][]byte) error {
	var stale []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if old, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name))); err != nil || !bytes.Equal(old, files[name]) {
			stale = append(stale, name)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("%w: run %s (%s)", ErrStale, Command, strings.Join(stale, ", "))
	}
	return nil
}
