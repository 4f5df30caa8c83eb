package reference

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/internal/gen/surface"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/sandbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestGenerated: what is generated is what the source gives.
func TestGenerated(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), root); err != nil {
		t.Error(err)
	}
}

// TestStale: a file that differs is named, with the command.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	err := compare(dir, map[string][]byte{"docs/a.md": []byte("a"), "docs/b.md": []byte("b")})
	if !errors.Is(err, ErrStale) || err.Error() != "generated files are stale: run go generate ./... (docs/a.md, docs/b.md)" {
		t.Errorf("got %v", err)
	}
	if err := write(dir, map[string][]byte{"docs/a.md": []byte("a")}); err != nil {
		t.Fatal(err)
	}
	if err := compare(dir, map[string][]byte{"docs/a.md": []byte("a")}); err != nil {
		t.Errorf("after writing: %v", err)
	}
}

// TestDeclarationsAreComplete: dsh.d.ts has every entry of the catalog.
func TestDeclarationsAreComplete(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "reference", "dsh.d.ts"))
	if err != nil {
		t.Fatal(err)
	}
	has := func(what string) {
		t.Helper()
		if !strings.Contains(string(text), what) {
			t.Errorf("dsh.d.ts does not have %s", what)
		}
	}
	for _, s := range catalog.Services {
		has("    " + s.Key + ": ")
		has("interface " + interfaceName(s.Key) + " {")
		for _, m := range s.Methods {
			for line := range strings.SplitSeq(m.Signature, "\n") {
				has("    " + line + ";")
			}
		}
	}
	for _, e := range catalog.Events {
		has("    on(event: '" + e.Name + "', ")
		has("    once(event: '" + e.Name + "', ")
	}
	for _, v := range catalog.Types {
		if !strings.Contains(string(text), "interface "+v.Name+" {") {
			has("type " + v.Name + " = ")
		}
	}
}

// TestDeclarationsCompile checks a plugin against dsh.d.ts, where there is a
// TypeScript compiler.
func TestDeclarationsCompile(t *testing.T) {
	tsc, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("there is no tsc")
	}
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file string
		want []string
	}{
		{"plugin.ts", nil},
		{"wrong.ts", []string{"(4,12): error TS2551", "(5,27): error TS2345", "(6,12): error TS2769", "(7,31): error TS2345"}},
	} {
		cmd := exec.CommandContext(t.Context(), tsc, "--noEmit", "--strict", "--target", "es2024", "--lib", "es2024", "--typeRoots", t.TempDir(),
			filepath.Join(root, "docs", "reference", "dsh.d.ts"), c.file)
		cmd.Dir, cmd.WaitDelay = "testdata", 5*time.Second
		out, err := cmd.CombinedOutput()
		if got := strings.Count(string(out), "error TS"); (err == nil) != (c.want == nil) || got != len(c.want) {
			t.Errorf("%s: %v, want %d errors:\n%s", c.file, err, len(c.want), out)
		}
		for _, want := range c.want {
			if !strings.Contains(string(out), c.file+want) {
				t.Errorf("%s: want %q in:\n%s", c.file, want, out)
			}
		}
	}
}

// TestSettings: the ranges of the page are those that the sandbox enforces.
func TestSettings(t *testing.T) {
	over := map[string]sandbox.Config{
		"vmTimeoutMs":      {VMTimeout: 100 * time.Hour},
		"callTimeoutMs":    {CallTimeout: 100 * time.Hour},
		"maxCallTimeoutMs": {MaxCallTimeout: 100 * time.Hour},
		"memoryMB":         {MemoryMB: 1 << 20},
		"workerMemoryMB":   {WorkerMemoryMB: 1 << 20},
	}
	spec, _ := standard.Catalog(standard.Given{}).Lookup("tool-cordis")
	for _, f := range spec.Settings.Fields() {
		cfg, ok := over[f.Path]
		if !ok {
			t.Errorf("%s: it is not tested", f.Path)
			continue
		}
		_, err := sandbox.New(cfg)
		least, most, _ := strings.Cut(strings.TrimPrefix(f.Bounds, "from "), " to ")
		if err == nil || !strings.HasPrefix(err.Error(), f.Path) || !strings.Contains(err.Error(), " from "+least) || !strings.Contains(err.Error(), " to "+most) {
			t.Errorf("%s: documented %s; the sandbox says %v", f.Path, f.Bounds, err)
		}
	}
}

// TestBudget: a text that costs more than its budget ends the generator.
func TestBudget(t *testing.T) {
	old := parts
	t.Cleanup(func() { parts = old })
	parts = slices.Clone(parts)
	parts[1].budget = 10
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	s := &surface.Surface{Services: catalog.Services, Events: catalog.Events, Types: catalog.Types}
	l, err := start(t.Context(), root, s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	_, err = l.toolsetPage(t.Context(), s)
	if err == nil || !strings.HasPrefix(err.Error(), "cordis_inspect costs ") || !strings.Contains(err.Error(), "and its budget is 10: shorten it") {
		t.Errorf("got %v", err)
	}
}

func TestHasWord(t *testing.T) {
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"a(t: Target): Info", "Target", true},
		{"a(t: TargetKey)", "Target", false},
		{"MyTarget | Target", "Target", true},
		{"MyTarget", "Target", false},
		{"", "Target", false},
	} {
		if got := hasWord(c.text, c.word); got != c.want {
			t.Errorf("hasWord(%q, %q) = %v", c.text, c.word, got)
		}
	}
}

// TestReportsFit: with every service running nothing of the api and of the events is cut.
func TestReportsFit(t *testing.T) {
	s := &surface.Surface{Services: catalog.Services, Events: catalog.Events, Types: catalog.Types}
	l, err := start(t.Context(), ".", s)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, args := range []string{`{"what":"api"}`, `{"what":"events"}`} {
		text, err := l.report(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(text, "(cut"); i >= 0 {
			t.Errorf("cordis_inspect %s: %d bytes, and yet %s", args, len(text), text[i:])
		}
	}
}
