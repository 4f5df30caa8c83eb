package standard

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/demo"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/kv"
	"github.com/dsh-go/dsh/service/web"
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
		layer := document.Layer{Name: name, Kind: document.User, Text: []byte("- " + Example(name) + "\n")}
		composed(t, Run(), layer) // whose ids are other plugins' in places
		rows := composed(t, layer)
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

// TestRules: texts with rules of their own are looked at when the document is.
func TestRules(t *testing.T) {
	for _, c := range []struct{ plugin, config, path, want string }{
		{"bash", `{"passEnv": ["OK", "A=B"]}`, "passEnv.1", "is no name of a variable"},
		{"web", `{"proxy": "ftp://x"}`, "proxy", "its scheme is http, https or socks5"},
		{"permission", `{"allow": ["bash(go test *)", "nope"]}`, "allow.1", `there is no rule "nope"`},
		{"session-permission", `{"mode": "all"}`, "mode", "must be one of ask, auto-edit, full, read-only"},
		{"session-permission", `{"deny": ["edit("]}`, "deny.0", "there is no ) at its end"},
	} {
		spec, _ := Catalog(Given{}).Lookup(c.plugin)
		v, err := lossless.Parse([]byte(c.config))
		if err != nil {
			t.Fatal(err)
		}
		_, faults := spec.Settings.Check(v)
		if len(faults) != 1 || strings.Join(faults[0].Path, ".") != c.path || !strings.Contains(faults[0].Message, c.want) {
			t.Errorf("%s %s: %v", c.plugin, c.config, faults)
		}
	}
}

// TestModes: the settings know every mode that there is.
func TestModes(t *testing.T) {
	spec, _ := Catalog(Given{}).Lookup("session-permission")
	var want []string
	for _, m := range permission.Modes() {
		want = append(want, string(m))
	}
	for _, f := range spec.Settings.Fields() {
		if f.Path == "mode" && !slices.Equal(f.Enum, want) {
			t.Errorf("the settings have the modes %q, the policy %q", f.Enum, want)
		}
	}
}

// TestSettingsReach: what settings say is what the plugins are made with.
func TestSettingsReach(t *testing.T) {
	if got := (fs.Settings{Roots: []string{"/a"}, ReadOnlyRoots: []string{"/b"}, Denied: []string{"/c"}}).Config(); !slices.Equal(got.Roots, []string{"/a"}) || !slices.Equal(got.ReadOnly, []string{"/b"}) || !slices.Equal(got.Denied, []string{"/c"}) {
		t.Errorf("fs: %+v", got)
	}
	if got := (bash.Settings{Dir: "/a", PassEnv: []bash.VariableName{"X"}}).Config(); got.Dir != "/a" || !slices.Equal(got.PassEnv, []string{"X"}) {
		t.Errorf("bash: %+v", got)
	}
	if got := (web.Settings{AllowPrivate: true, Proxy: "http://p", FetchProvider: "f", SearchProvider: "s"}).Config(); got != (web.Config{AllowPrivate: true, Proxy: "http://p", FetchProvider: "f", SearchProvider: "s"}) {
		t.Errorf("web: %+v", got)
	}
	if got := (kv.Settings{Dir: "/a"}).Config(); got != (kv.Config{Dir: "/a"}) {
		t.Errorf("kv: %+v", got)
	}
	if got := (agent.Settings{MaxParallel: 2, Retries: 0, MaxSteps: 3, MaxTokens: 4}).Config(); got.MaxParallel != 2 || got.Retry.Max != -1 || got.MaxSteps != 3 || got.MaxTokens != 4 {
		t.Errorf("agents: %+v", got)
	}
	got, err := (permission.Settings{Mode: "full", Allow: []permission.RuleText{"bash"}, Deny: []permission.RuleText{"mount"}}).Config()
	if err != nil || got.Mode != permission.Full || len(got.Allow) != 1 || len(got.Deny) != 1 {
		t.Errorf("permission: %+v, %v", got, err)
	}
}
