package surface

import (
	"encoding/json"
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden files")

// overlay is where the packages of an archive seem to be.
const overlay = "internal/gen/surface/testdata/overlay"

// loadArchive loads the packages of an archive, by their folders.
func loadArchive(t *testing.T, a *txtar.Archive) (Config, *loaded, map[string]*packages.Package) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: root, Overlay: map[string][]byte{}}
	for _, f := range a.Files {
		if !strings.HasSuffix(f.Name, ".go") {
			continue
		}
		cfg.Overlay[filepath.Join(root, overlay, f.Name)] = f.Data
		if p := "./" + path.Join(overlay, path.Dir(f.Name)); len(cfg.Patterns) == 0 || cfg.Patterns[len(cfg.Patterns)-1] != p {
			cfg.Patterns = append(cfg.Patterns, p)
		}
	}
	l, err := load(cfg)
	if err != nil {
		t.Fatal(err)
	}
	byDir := map[string]*packages.Package{}
	for _, p := range l.packages {
		byDir[path.Base(p.PkgPath)] = p
	}
	return cfg, l, byDir
}

func archive(t *testing.T, name string) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// repositoryLine is a place in the repository itself, whose line may move.
var repositoryLine = regexp.MustCompile(`(?m)^(tool/events\.go):\d+`)

func TestProblems(t *testing.T) {
	a := archive(t, "problems.txtar")
	cfg, l, pkgs := loadArchive(t, a)
	for _, f := range a.Files {
		dir, isWant := strings.CutSuffix(f.Name, "/want")
		if !isWant {
			continue
		}
		t.Run(dir, func(t *testing.T) {
			s, err := describe(cfg, l, pkgs[dir])
			if err == nil {
				t.Fatalf("no error; got %+v", s)
			}
			got := strings.ReplaceAll(err.Error(), path.Join(overlay, dir)+"/", "")
			got = repositoryLine.ReplaceAllString(got, "$1")
			if diff := cmp.Diff(strings.TrimSpace(string(f.Data)), got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSample(t *testing.T) {
	a := archive(t, "sample.txtar")
	cfg, l, pkgs := loadArchive(t, a)
	s, err := describe(cfg, l, pkgs["sample"])
	if err != nil {
		t.Fatal(err)
	}
	s.Limits = nil
	golden := filepath.Join("testdata", "sample.json")
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("sample (-want +got); run with -update if that is meant:\n%s", diff)
	}
}

func TestBrokenPackage(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, overlay, "broken", "x.go")
	_, err = Read(Config{Dir: root, Patterns: []string{"./" + overlay + "/broken"}, Overlay: map[string][]byte{name: []byte("package x\n\nvar a missing\n")}})
	if err == nil || !strings.Contains(err.Error(), "x.go:3:7: undefined: missing") {
		t.Errorf("got %v", err)
	}
}

func TestCut(t *testing.T) {
	d := "interface A {\n" + strings.Repeat("  /** a field. */\n  field: string;\n", 100) + "}"
	got := cut(d)
	if len(got) > maxDeclaration+len(cutMarker) || !strings.HasSuffix(got, cutMarker) || !strings.HasPrefix(d, strings.TrimSuffix(got, cutMarker)) {
		t.Errorf("got %d characters:\n%s", len(got), got)
	}
}

func TestLower(t *testing.T) {
	for in, want := range map[string]string{
		"ReadText": "readText", "URL": "url", "FileURL": "fileURL", "HTMLBody": "htmlBody", "ID": "id", "A": "a", "CallID": "callID",
	} {
		if got := lower(in); got != want {
			t.Errorf("lower(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestProse(t *testing.T) {
	d := newDocs("", nil)
	d.values["Text"] = "2,000"
	names := map[string]string{"ReadText": "readText", "Error": "error", "URL": "url"}
	for _, c := range []struct{ own, in, want string }{
		{"ReadText", "ReadText gives a text.\nIt ends.", "Gives a text. It ends."},
		{"Target", "A Target is a place.", "a place."},
		{"Options", "Options are settings, see [ReadText].", "settings, see readText."},
		{"Kind", "At most limits.Text characters; limits.Other stays.", "At most 2,000 characters; limits.Other stays."},
		{"", "Error says why; Error stays, \"Error: x\" too. ReadText is called.", "Error says why; error stays, \"Error: x\" too. readText is called."},
		{"", "See [Thing] and [fs.Thing.URL], not a[i].", "See Thing and url, not a[i]."},
	} {
		if got := d.prose(c.own, c.in, names); got != c.want {
			t.Errorf("prose(%q, %q) = %q, want %q", c.own, c.in, got, c.want)
		}
	}
}

func TestSummary(t *testing.T) {
	for in, want := range map[string]string{
		"One. Two.":             "One.",
		"One, e.g. two. Three.": "One, e.g. two.",
		"One\ntwo.\n\nThree.":   "One two.",
		"No end":                "No end",
	} {
		if got := summary(in); got != want {
			t.Errorf("summary(%q) = %q, want %q", in, got, want)
		}
	}
}
