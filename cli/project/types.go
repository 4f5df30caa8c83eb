package project

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-go/dsh/docs/reference"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/files"
)

// The bounds of one run of tsc.
const (
	typesTime = time.Minute
	typesKill = 2 * time.Second // from its end until its streams are given up
)

// typed is what tsc said.
type typed struct {
	skipped string // why it was not asked
	err     error
}

// checkTypes has tsc look at the texts that were read, in a folder of their own with
// the types of dsh. It never fetches anything: a tsc that is not there is not asked.
func checkTypes(ctx context.Context, f files.File) typed {
	program, err := exec.LookPath("tsc")
	if err != nil {
		return typed{skipped: "there is no tsc on PATH"}
	}
	dir, err := os.MkdirTemp("", "dsh-check-")
	if err != nil {
		return typed{err: fmt.Errorf("make a folder: %w", err)}
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is the system's to clean
	if err := typesIn(dir, f); err != nil {
		return typed{err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, typesTime)
	defer cancel()
	var out bounded
	cmd := exec.CommandContext(ctx, program, "--project", dir, "--pretty", "false")
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, typesKill
	err = cmd.Run()
	exit := new(exec.ExitError)
	switch {
	case err == nil:
		return typed{}
	case ctx.Err() != nil:
		return typed{err: fmt.Errorf("tsc did not end within %s", typesTime)}
	case errors.As(err, &exit) && exit.Exited():
		text := strings.TrimSpace(plain.Visible(plain.Cut(out.String(), limits.ErrorText)))
		return typed{err: fmt.Errorf("tsc says:\n    %s", strings.ReplaceAll(text, "\n", "\n    "))}
	}
	return typed{err: fmt.Errorf("run tsc: %w", err)}
}

// typesIn writes what tsc reads.
func typesIn(dir string, f files.File) error {
	names := []string{"dsh.d.ts"}
	texts := map[string]string{"dsh.d.ts": reference.Types}
	for name, text := range f.Files {
		texts[filepath.Join("plugin", filepath.FromSlash(name))] = text
	}
	names = append(names, "plugin/"+f.Entry)
	config, err := json.Marshal(map[string]any{
		"compilerOptions": map[string]any{
			"noEmit": true, "strict": true, "target": "es2024", "module": "esnext", "moduleResolution": "bundler",
			"lib": []string{"es2024"}, "types": []string{}, "allowJs": true, "resolveJsonModule": true, "allowImportingTsExtensions": true,
		},
		"files": names,
	})
	if err != nil {
		return fmt.Errorf("write tsconfig.json: %w", err)
	}
	texts["tsconfig.json"] = string(config)
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("write for tsc: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write for tsc: %w", err)
		}
	}
	return nil
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := 4*limits.ErrorText - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
