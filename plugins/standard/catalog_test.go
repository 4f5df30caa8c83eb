package standard

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/demo"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod"
)

// composed are the rows that layers make together.
func composed(t *testing.T, layers ...document.Layer) []document.Row {
	t.Helper()
	var docs []*document.Document
	for _, l := range layers {
		d, faults := document.Parse(l)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		docs = append(docs, d)
	}
	c, faults := document.Compose(docs, document.Options{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return c.Rows
}

// TestBuiltin: every row of the built-in compositions names a plugin, its config fits,
// and its id is its own.
func TestBuiltin(t *testing.T) {
	for _, l := range []document.Layer{Run(), MCP(), Demo()} {
		t.Run(strings.ReplaceAll(l.Name, " ", "_"), func(t *testing.T) {
			catalog := Catalog(Given{})
			for _, row := range composed(t, l) {
				spec, ok := catalog.Lookup(row.Name)
				if !ok {
					t.Errorf("row %s names %s, which is no plugin", row.ID, row.Name)
					continue
				}
				var config any
				if spec.Settings == nil && !row.Config.IsNull() {
					t.Errorf("row %s has a config, and %s takes none", row.ID, row.Name)
				} else if spec.Settings != nil {
					var faults any
					config, faults = spec.Settings.CheckFrom(row.Config, loader.SourceOf(row))
					if config == nil {
						t.Error(row.ID, faults)
						continue
					}
				}
				if p, err := spec.New(config); err != nil || p == nil || p.Apply == nil {
					t.Errorf("row %s: %v", row.ID, err)
				}
			}
			if bytes.ContainsAny(l.Text, "\t\r") {
				t.Error("there are tabs or CRs in it")
			}
		})
	}
}

func ids(rows []document.Row) (all []string) {
	for _, r := range rows {
		all = append(all, r.ID)
	}
	return all
}

// TestToolsetIsAskedFor: the toolset is in no default of dsh run, is one row with --self,
// and dsh mcp has it without any tool of a model.
func TestToolsetIsAskedFor(t *testing.T) {
	for _, r := range composed(t, Run()) {
		if r.ID == "tool-cordis" || r.Name == "tool-cordis" {
			t.Error("dsh run has a row of the toolset")
		}
	}
	if got := composed(t, Run(), Self()); got[len(got)-1].Name != "tool-cordis" {
		t.Error("--self adds no row of the toolset")
	}
	own := document.Layer{Name: "own", Kind: document.User, Text: []byte("- {id: tool-cordis, name: tool-cordis, config: {vmTimeoutMs: 7}}\n")}
	got := composed(t, Run(), own, Self())
	if n := len(got); !strings.Contains(string(got[n-1].Config.Encode()), "7") || slices.Contains(ids(got[:n-1]), "tool-cordis") {
		t.Errorf("--self beside a row of one's own: %v, %s", ids(got), got[n-1].Config.Encode())
	}
	for _, r := range composed(t, MCP()) {
		if strings.HasPrefix(r.Name, "tool-") && r.Name != "tool-cordis" {
			t.Errorf("dsh mcp has %s", r.Name)
		}
	}
}

// TestDemoLimit: the document of the demonstration says the limit that it counts on.
func TestDemoLimit(t *testing.T) {
	for _, r := range composed(t, Demo()) {
		if r.ID != "tool-cordis" {
			continue
		}
		if v, _ := r.Config.Get("vmTimeoutMs"); v.Literal() != lossless.Int(demo.VMTimeout.Milliseconds()).Literal() {
			t.Errorf("vmTimeoutMs is %s; the demonstration counts on %s", v.Literal(), demo.VMTimeout)
		}
	}
}

// TestTable: every plugin is told of, projects may change nothing of the host, and
// every option says what it is.
func TestTable(t *testing.T) {
	catalog := Catalog(Given{})
	names := catalog.Names()
	if !slices.IsSorted(names) {
		t.Error("the names are not sorted")
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("a name is there twice")
	}
	for _, name := range names {
		spec, ok := catalog.Lookup(name)
		if !ok || spec.Name != name {
			t.Errorf("%s is not found", name)
		}
		if n := strings.Count(spec.Doc, ". ") + 1; spec.Doc == "" || !strings.HasSuffix(spec.Doc, ".") || n > 3 {
			t.Errorf("%s: its doc is one to three sentences, and is %q", name, spec.Doc)
		}
		if spec.Plane == loader.Host && !spec.PersonOnly {
			t.Errorf("%s is the host's, and projects may add it", name)
		}
		if spec.Settings == nil {
			continue
		}
		for _, f := range spec.Settings.Fields() {
			if !strings.HasSuffix(f.Doc, ".") {
				t.Errorf("%s.%s: its doc is no sentence: %q", name, f.Path, f.Doc)
			}
		}
		if _, faults := spec.Settings.Check(lossless.Value{}); len(faults) > 0 {
			t.Errorf("%s: the empty config is refused: %v", name, faults)
		}
	}
	if _, ok := catalog.Lookup("toolcordis"); ok {
		t.Error("there is a plugin of a name that is none")
	}
}

// TestExamples: the example of every plugin is a row that is right.
func TestExamples(t *testing.T) {
	catalog := Catalog(Given{})
	for _, name := range catalog.Names() {
		rows := composed(t, document.Layer{Name: name, Kind: document.User, Text: []byte("- " + Example(name) + "\n")})
		spec, _ := catalog.Lookup(name)
		if len(rows) != 1 || rows[0].Name != name || spec.Settings == nil != rows[0].Config.IsNull() {
			t.Errorf("the example of %s is %s", name, Example(name))
			continue
		}
		if spec.Settings != nil {
			if _, faults := spec.Settings.CheckFrom(rows[0].Config, loader.SourceOf(rows[0])); len(faults) > 0 {
				t.Errorf("%s: %v", Example(name), faults)
			}
		}
	}
	if Example("nothing") != "" {
		t.Error("there is an example of no plugin")
	}
}

// TestSettings: what settings become.
func TestSettings(t *testing.T) {
	spec, _ := Catalog(Given{}).Lookup("tool-cordis")
	check := func(text string) (any, []string) {
		v, err := lossless.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		config, faults := spec.Settings.Check(v)
		var all []string
		for _, f := range faults {
			all = append(all, f.Message)
		}
		return config, all
	}
	config, faults := check("{}")
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	got := config.(selfmod.Settings).Config(selfmod.Config{Worker: "w"})
	if got.VMTimeout != limits.VMTimeout || got.CallTimeout != limits.CallTimeout || got.MaxCallTimeout != limits.MaxCallTimeout || got.MemoryMB != limits.VMMemoryMB || got.Worker != "w" {
		t.Errorf("the defaults are %+v", got)
	}
	for text, want := range map[string]string{
		`{"vmTimeoutMs": 0}`:                              "vmTimeoutMs must be from 1 to 60000, and is 0",
		`{"vmTimeoutms": 1}`:                              `there is no option "vmTimeoutms"; did you mean "vmTimeoutMs"?`,
		`{"callTimeoutMs": 300, "maxCallTimeoutMs": 200}`: "maxCallTimeoutMs (200) must not be below callTimeoutMs (300)",
		`{"memoryMB": 512, "workerMemoryMB": 256}`:        "workerMemoryMB (256) must not be below memoryMB (512): the worker holds all mounts",
		`{"memoryMB": 1e9}`:                               "memoryMB must be from 16 to 2048, and is 1e9",
	} {
		if _, faults := check(text); !slices.Equal(faults, []string{want}) {
			t.Errorf("%s: %q, want %q", text, faults, want)
		}
	}
}
