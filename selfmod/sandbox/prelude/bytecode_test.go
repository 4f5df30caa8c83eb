package prelude_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
)

var update = flag.Bool("update", false, "write the bytecode of the prelude")

// The bytecode beside the scripts is what the engine makes of them, all of it and
// nothing else.
func TestBytecodeIsFresh(t *testing.T) {
	scripts := map[string]string{"core": prelude.Core()}
	for _, p := range prelude.Parts() {
		scripts[p.Name] = p.Source
	}
	vm, err := qjs.New(qjs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	const how = "; run go test ./selfmod/sandbox/prelude -run TestBytecodeIsFresh -update"
	files := map[string]bool{}
	for name, script := range scripts {
		code, err := vm.CompileStripped(script, prelude.Filename)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("bytecode", prelude.Key(script, qjs.EngineVersion)+".bin")
		files[file] = true
		if *update {
			if err := os.WriteFile(file, code, 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got := prelude.Bytecode(script, qjs.EngineVersion); !bytes.Equal(got, code) {
			t.Errorf("the bytecode of %s is not that of its script%s", name, how)
		}
	}
	there, err := filepath.Glob("bytecode/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range there {
		switch {
		case files[file]:
		case *update:
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		default:
			t.Errorf("%s belongs to no script%s", file, how)
		}
	}
}

// Another engine, or another script, gets no bytecode.
func TestBytecodeOfOthers(t *testing.T) {
	if prelude.Bytecode(prelude.Core(), "quickjs-0") != nil || prelude.Bytecode("1", qjs.EngineVersion) != nil {
		t.Error("there is bytecode of what it was not made for")
	}
}
