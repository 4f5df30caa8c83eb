package project

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/selfmod/files"
)

// tsc puts a program of that name, alone, on PATH.
func tsc(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands for tsc here, and Windows starts none")
	}
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "tsc"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// TestCheckTypes: tsc is given what was read, in a folder of its own that goes again,
// and what it says is passed on, bounded.
func TestCheckTypes(t *testing.T) {
	f := files.File{Entry: "index.ts", Files: map[string]string{"index.ts": "import './lib/a'", "lib/a.ts": "export {}"}}
	seen := filepath.Join(t.TempDir(), "seen")
	for name, c := range map[string]struct{ script, skipped, err string }{
		"none":  {"", "there is no tsc on PATH", ""},
		"good":  {`[ -f dsh.d.ts ] && [ -f plugin/index.ts ] && [ -f plugin/lib/a.ts ] && [ "$1" = --project ] && [ -f "$2/tsconfig.json" ] && echo "$2" >` + seen, "", ""},
		"bad":   {`echo "plugin/index.ts(1,8): error TS1: no"; exit 2`, "", "tsc says:\n    plugin/index.ts(1,8): error TS1: no"},
		"loud":  {`while [ "${i:=0}" -lt 10000 ]; do echo 0123456789; i=$((i+1)); done; exit 1`, "", "characters cut)"},
		"plain": {`printf 'a\033[2Jb'; exit 1`, "", `a\x1b[2Jb`},
	} {
		t.Run(name, func(t *testing.T) {
			tsc(t, c.script)
			got := checkTypes(t.Context(), f)
			switch {
			case got.skipped != c.skipped, (got.err != nil) != (c.err != ""):
				t.Fatalf("%+v", got)
			case got.err != nil && !strings.Contains(got.err.Error(), c.err):
				t.Errorf("%v", got.err)
			case got.err != nil && len(got.err.Error()) > 20_000:
				t.Errorf("%d bytes", len(got.err.Error()))
			}
		})
	}
	dir, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(dir))); !os.IsNotExist(err) {
		t.Errorf("its folder is there still: %v", err)
	}
}
