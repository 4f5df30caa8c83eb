package repotest

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
	"testing"
)

// importRule says what a package's own files may import beyond the standard
// library. Tests may import anything but what `nobody` below forbids.
type importRule struct {
	pkg string   // a folder, or folder/... for it and all below
	may []string // folders of this module, or module paths of others; folder/... as above
	why string
}

// importRules goes from the bottom of the program to its top: an import points
// to something above it in this table. Rows are exact before they are patterns.
var importRules = []importRule{
	{"limits", nil, "a table of numbers that everything reads must not read anything"},
	{"cordis", nil, "the runtime is standard library only: whoever learns it learns nothing else"},
	{"lossless", []string{"limits"}, "JSON text is a value type below every protocol"},
	{"internal/plain", []string{"limits"}, "making text safe to show must be possible anywhere"},
	{"internal/regular", nil, "whoever opens a file that somebody else names must be able to"},
	{"docs/reference", nil, "generated texts that the program shows"},
	{"internal/atomicfile", nil, "whoever keeps a file must be able to write it whole"},
	{"schema", []string{"limits", "lossless", "internal/plain"}, "schemas describe JSON and know no tool"},
	{"tool", []string{"limits", "cordis", "lossless", "schema", "internal/plain"},
		"the registry knows the runtime and JSON, no front door, no engine, no model"},

	{"session/message", []string{"limits", "lossless", "internal/plain"}, "what is said to models is a value type below the log and the providers"},
	{"session", []string{"limits", "lossless", "internal/plain", "session/message"}, "the log knows JSON and messages, no loop, no provider, no file"},
	{"session/memory", []string{"limits", "session"}, "a store for tests"},
	{"session/jsonl", []string{"limits", "lossless", "internal/plain", "internal/regular", "internal/atomicfile", "session", "session/message"}, "a store knows the log and the file system"},
	{"session/sessiontest", []string{"limits", "lossless", "session", "session/message", "github.com/google/go-cmp"}, "the suite stands on the contract, not on a store"},
	{"llm", []string{"limits", "lossless", "internal/plain", "session/message"}, "what the loop knows of models knows no wire format and no runtime"},
	{"llm/internal/...", []string{"limits", "internal/plain", "llm", "github.com/tmaxmax/go-sse", "github.com/goccy/go-yaml"}, "reading events and YAML is the adapters' own"},
	{"llm/keys", []string{"limits", "internal/plain", "internal/regular", "internal/atomicfile", "llm", "llm/internal/...", "github.com/goccy/go-yaml"}, "keys are found here and shown nowhere"},
	{"llm/providers", []string{"internal/plain", "llm", "llm/openai", "llm/anthropic", "llm/script", "llm/manual", "llm/keys"}, "the one list of providers that are linked in"},
	{"llm/...", []string{"limits", "lossless", "internal/plain", "internal/regular", "llm", "llm/internal/...", "session/message", "github.com/goccy/go-yaml"}, "an adapter speaks to one kind of model and knows no loop"},

	{"service/...", []string{"limits", "cordis", "lossless", "schema", "tool", "internal/plain", "internal/atomicfile", "service/...",
		"github.com/bmatcuk/doublestar/v4", "github.com/fsnotify/fsnotify", "github.com/JohannesKaufmann/html-to-markdown/v2",
		"golang.org/x/net", "golang.org/x/text", "golang.org/x/sys"},
		"a service is what plugins inject; it asks the registry's policy and knows no toolset"},

	{"prompt/...", []string{"limits", "cordis", "lossless", "internal/plain", "tool", "service/...", "prompt"},
		"the prompt is made of what plugins contribute; it knows no model and no log"},
	{"agent/agenttest", []string{"limits", "cordis", "lossless", "tool", "session", "session/...", "llm", "llm/...", "prompt", "agent", "github.com/google/go-cmp"},
		"a test kit stands on what it tests"},
	{"agent/...", []string{"limits", "cordis", "lossless", "schema", "internal/plain", "tool", "service", "session", "session/message", "llm", "prompt", "agent"},
		"the loop joins the log, the models, the prompt and the tools; it knows none of the tools, stores and providers"},
	{"trust", []string{"limits", "internal/plain", "internal/regular", "internal/atomicfile", "github.com/rogpeppe/go-internal"},
		"what a person trusts is bytes of files; it knows no plugin and no document"},
	{"permission/...", []string{"trust", "limits", "cordis", "lossless", "schema", "internal/plain", "tool", "service/...", "session", "permission/...", "mvdan.cc/sh/v3",
		"github.com/bmatcuk/doublestar/v4"},
		"policy listens where services act; it knows no front door and no loop"},
	{"toolbox/...", []string{"limits", "cordis", "lossless", "schema", "internal/plain", "tool", "service/...", "session", "session/message", "prompt", "agent", "toolbox/...",
		"github.com/bmatcuk/doublestar/v4"},
		"a model tool stands on a service and says what it did; it knows no front door"},

	{"loader/settings", []string{"limits", "lossless", "internal/plain"}, "the config of a plugin is JSON and a struct; it knows no document"},
	{"loader/watch", []string{"limits", "github.com/fsnotify/fsnotify"}, "following files knows nothing of what is in them"},
	{"loader/document/...", []string{"limits", "cordis", "lossless", "internal/plain", "internal/regular", "loader/document/...", "github.com/goccy/go-yaml"},
		"a document is text with rows; it mounts nothing and knows no plugin"},
	{"loader", []string{"limits", "cordis", "lossless", "tool", "internal/plain", "loader/document", "loader/settings"},
		"rows become fibers; what plugins there are is the catalog's"},

	{"internal/qjs", []string{"limits", "modernc.org/quickjs", "modernc.org/libquickjs", "modernc.org/libc"},
		"the engine's binding knows no plugin and no protocol"},
	{"selfmod/sandbox/...", []string{
		"limits", "cordis", "lossless", "schema", "tool", "internal/plain", "internal/qjs", "selfmod/sandbox/...",
		"service/...", "github.com/evanw/esbuild",
		"github.com/landlock-lsm/go-landlock", "github.com/elastic/go-seccomp-bpf", "golang.org/x/sys",
	}, "the engine, the TypeScript compiler and the lock are used here and nowhere else"},
	{"selfmod/catalog/...", []string{"limits", "lossless", "schema", "cordis", "internal/plain"},
		"the catalog is generated data; the generator is not linked"},
	{"selfmod/bridge", []string{"limits", "cordis", "lossless", "schema", "tool", "internal/plain", "service/...", "selfmod/catalog"},
		"the bridge calls what the catalog lists, and knows no worker"},
	{"selfmod/mount", []string{"selfmod/bridge", "selfmod/catalog", "limits", "cordis", "lossless", "schema", "tool", "internal/plain", "service/...", "selfmod/sandbox/..."},
		"mounts are fibers with a worker behind them; the toolset's texts are above them"},
	{"selfmod/files", []string{"limits", "cordis", "lossless", "tool", "internal/plain", "internal/regular", "selfmod/mount", "selfmod/sandbox"},
		"plugin files are mounts with a path; what names them is above"},
	{"selfmod", []string{"limits", "cordis", "lossless", "schema", "tool", "internal/plain", "service/...", "loader", "selfmod/..."},
		"the toolset stands on the registry and the sandbox; the engine stays behind the sandbox"},

	{"selfmod/selfmodtest", []string{"limits", "cordis", "lossless", "tool", "selfmod", "selfmod/...", "service/...", "go.uber.org/goleak"},
		"a test kit stands on what it tests"},
	{"selfmod/internal/...", []string{"selfmod", "selfmod/selfmodtest"}, "tests of the toolset that fill a package of their own"},

	{"selfmod/notice", []string{"limits", "cordis", "lossless", "internal/plain", "tool", "session", "session/message", "agent", "selfmod", "selfmod/mount"},
		"tells an agent what became of its mounts; the only part of the toolset that knows the loop"},
	{"serve/mcp/...", []string{"limits", "cordis", "lossless", "schema", "tool", "internal/plain",
		"serve/mcp/...", "github.com/modelcontextprotocol/go-sdk"},
		"a front door speaks a wire protocol and has no logic: it knows the registry, not what is registered"},
	{"demo/...", []string{"limits", "lossless", "llm", "llm/script", "session", "session/message", "agent"},
		"the demo drives a real agent with a script for a model; who composes it is the caller"},
	{"internal/calls", []string{"limits", "internal/plain"}, "reads scripts of tool calls; it makes none"},
	{"plugins/standard", []string{"loader", "loader/...", "lossless", "limits", "cordis", "tool", "internal/plain", "session", "llm", "llm/...", "service", "service/...", "prompt", "prompt/...", "agent", "agent/...",
		"permission", "permission/...", "toolbox/...", "selfmod", "selfmod/..."},
		"the one list of what is linked in names everything that is a plugin, and no front door"},
	{"composition", []string{"limits", "cordis", "lossless", "tool", "internal/plain", "loader", "loader/...", "trust", "selfmod/files", "selfmod/sandbox"},
		"joins documents, trust and trees; which plugins there are is the caller's"},
	{"serve/terminal", []string{"limits", "lossless", "internal/plain", "tool", "session", "session/message", "permission", "toolbox/ask", "golang.org/x/term"},
		"a front door shows and asks; it runs no agent and knows no tool"},
	{"cli/command", []string{"composition", "loader", "loader/document", "lossless", "limits", "cordis", "tool", "internal/plain", "plugins/standard", "service/...", "permission", "github.com/spf13/cobra", "github.com/spf13/pflag"},
		"what the commands have in common knows none of them"},
	{"cli/config", []string{"cli/command", "composition", "loader", "loader/...", "limits", "lossless", "internal/plain", "plugins/standard", "docs/reference", "github.com/spf13/cobra"},
		"commands that look at documents start nothing"},
	{"cli/project", []string{"cli/command", "composition", "cordis", "tool", "limits", "lossless", "internal/plain", "internal/atomicfile", "loader", "loader/document", "trust", "docs/reference",
		"selfmod/...", "service/...", "plugins/standard", "serve/terminal", "github.com/spf13/cobra", "github.com/spf13/pflag"},
		"commands for a project's files wire trust, documents and plugin files together"},
	{"cli/work", []string{"composition", "loader", "loader/...", "trust", "selfmod/...", "cli/command", "limits", "cordis", "lossless", "tool", "internal/plain", "selfmod", "session", "session/...", "llm", "llm/...", "agent", "agent/...", "permission",
		"toolbox/ask", "service/fs", "plugins/standard", "serve/terminal", "demo", "github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
		"the commands that do work for a person wire the loop to a terminal"},
	{"cli", []string{"composition", "loader", "loader/...", "trust", "docs/reference", "cli/config", "cli/project", "cli/command", "cli/work", "plugins/standard", "internal/calls", "internal/regular", "limits", "cordis", "lossless", "tool", "internal/plain", "selfmod", "selfmod/sandbox/...", "serve/...", "service/...",
		"demo", "github.com/spf13/cobra", "github.com/spf13/pflag"},
		"commands wire the parts together"},
	{"cmd/dsh", []string{"cli"}, "main is a door: whoever builds their own program starts from cli"},

	{"internal/killtest", []string{"limits", "lossless", "session", "session/...", "llm", "llm/..."}, "kills the built program and looks at what it left"},
	{"internal/golden", []string{"github.com/google/go-cmp"}, "compares texts of tests with files; it knows neither"},
	{"internal/repotest", nil, "rules of the repository; no code"},
	{"internal/casetest", []string{"lossless"}, "runs the built program from outside, so it needs no part of it"},
	{"internal/gen/...", []string{"loader", "loader/...", "plugins/standard", "limits", "cordis", "lossless", "schema", "tool", "selfmod/...", "cli", "internal/gen/...", "golang.org/x/tools"},
		"generators read the code and the flags they describe and are linked into no program"},
}

// nobody may import these, tests included, but for the packages named.
var nobody = []struct {
	imported string
	but      []string
	why      string
}{
	{"cli/...", []string{"cli/...", "cmd/dsh", "internal/gen/..."}, "commands are the top of the program; the generator describes them"},
	{"internal/gen/...", []string{"internal/gen/..."}, "the shipped binary links none of the generators"},
	{"github.com/stretchr/testify/...", nil, "tests compare with go-cmp and say what they got and wanted"},
}

func TestImports(t *testing.T) {
	for _, s := range repoSources(t) {
		dir := s.Dir()
		rule, ok := ruleFor(dir)
		if !ok {
			t.Errorf("%s: no row for this package; add one to importRules and say why", dir)
			continue
		}
		for _, spec := range s.Syntax.Imports {
			target := importTarget(spec)
			if target == dir {
				continue // an external test of its own package
			}
			for _, n := range nobody {
				if matches(n.imported, target) && !anyMatches(n.but, dir) {
					t.Errorf("%s: imports %s: %s", fset.Position(spec.Pos()), target, n.why)
				}
			}
			if !s.Test && target != "" && !anyMatches(rule.may, target) {
				t.Errorf("%s: %s may not import %s: %s", fset.Position(spec.Pos()), dir, target, rule.why)
			}
		}
	}
}

// TestImportRulesGoDown: a row only names rows above it, so the table has no cycle.
func TestImportRulesGoDown(t *testing.T) {
	for i, r := range importRules {
		if r.why == "" {
			t.Errorf("%s: the row gives no reason", r.pkg)
		}
		for _, m := range r.may {
			for j, other := range importRules {
				if other.pkg == m && j > i {
					t.Errorf("%s may import %s, which stands below it in the table", r.pkg, m)
				}
			}
		}
	}
}

// importTarget is a folder of this module, the path of another module's package,
// or "" for the standard library.
func importTarget(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	if rest, ok := strings.CutPrefix(p, modulePath+"/"); ok {
		return rest
	}
	if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") {
		return ""
	}
	return p
}

func ruleFor(dir string) (importRule, bool) {
	for _, r := range importRules {
		if r.pkg == dir {
			return r, true
		}
	}
	for _, r := range importRules {
		if matches(r.pkg, dir) {
			return r, true
		}
	}
	return importRule{}, false
}

func anyMatches(patterns []string, target string) bool {
	for _, p := range patterns {
		// Another module's row stands for all its packages.
		if matches(p, target) || strings.Contains(p, ".") && strings.HasPrefix(target, p+"/") {
			return true
		}
	}
	return false
}

func matches(pattern, target string) bool {
	base, tree := strings.CutSuffix(pattern, "/...")
	return target == base || tree && strings.HasPrefix(target, base+"/") || path.Clean(pattern) == target
}
