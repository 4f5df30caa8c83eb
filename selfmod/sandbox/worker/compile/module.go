package compile

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// The bundle of a module stands in a function whose value is the plugin. What
// follows it makes one plugin of all that the module exports: what is exported by
// name wins over the members of the default export; a function as the default is
// apply.
const (
	moduleBefore = "(async function () {\n"
	moduleAfter  = "\nreturn ((m) => {" +
		" const d = m.default, of = typeof d === 'object' && d !== null ? d : {};" +
		" const pick = (k) => m[k] !== undefined ? m[k] : of[k];" +
		" let run = pick('apply');" +
		" if (run === undefined && typeof d === 'function' && !/^class\\b/.test(Function.prototype.toString.call(d))) run = d;" +
		" if (typeof run !== 'function') { const e = new TypeError(%s); e.code = 'NOT_A_PLUGIN'; throw e }" +
		" let name = pick('name'); if (name === undefined && typeof d === 'function' && d.name !== 'default') name = d.name;" +
		" const config = pick('Config');" +
		" const inject = m.inject !== undefined ? m.inject : d !== undefined && d !== null ? d.inject : undefined;" +
		" const self = m.apply === undefined && typeof d === 'object' ? d : undefined;" +
		" return { name, inject, Config: config === undefined ? undefined : JSON.stringify(config), apply: (ctx, config) => run.call(self, ctx, config) }" +
		" })(" + moduleName + " || {})\n})"
	moduleName = "__dsh_module"
	namespace  = "dsh"
)

// notPlugin is said of a module that exports no plugin.
const notPlugin = "the plugin file exports no plugin" +
	"\n  ✓ export default { name: '…', inject: […], apply(ctx, config) { … } }" +
	"\n  ✓ export const inject = […]; export function apply(ctx, config) { … }"

// bodyHint is said of what was written for cordis_mount.
const bodyHint = "\nThis looks like the body of a cordis_mount: in a plugin file write `export default {…}` instead of `return {…}`."

var (
	topReturn = regexp.MustCompile(`(?m)^return\b`)
	anyExport = regexp.MustCompile(`(?m)^\s*export\b`)
)

// Module compiles the ES module entry of files, by their paths below the plugin's
// folder, with what it imports of them. file names the plugin in positions: the
// module's own file, or its folder. Its errors are those of Source.
func Module(engine Engine, files map[string]string, entry, file string) (*Unit, error) {
	b := &bundle{files: make(map[string]string, len(files)), file: file, entry: entry}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := strings.TrimPrefix(strings.ToValidUTF8(files[name], "\uFFFD"), "\uFEFF")
		if total += len(text); total > limits.Source {
			return nil, &wire.Fault{Name: "RangeError", Code: wire.CodeTooLarge, Message: fmt.Sprintf(
				"the files of the plugin take more than %d bytes together, the limit", limits.Source)}
		}
		if at := scan(text).tooDeep; at >= 0 && isScript(name) {
			return nil, fault(text, b.shown(name), at, fmt.Sprintf("the source is nested deeper than %d brackets", limits.SourceNesting), "")
		}
		b.files[name] = text
	}
	if _, ok := b.files[entry]; !ok {
		return nil, &wire.Fault{Name: "Error", Code: wire.CodeSyntax, Message: fmt.Sprintf("the plugin has no file %q", entry)}
	}
	out, err := b.build()
	if err != nil {
		return nil, err
	}
	explained := notPlugin
	if text := b.files[entry]; topReturn.MatchString(text) && !anyExport.MatchString(text) {
		explained += bodyHint
	}
	message, _ := json.Marshal(explained) // of a text: it has no error
	code := moduleBefore + out.code + fmt.Sprintf(moduleAfter, message)
	positions := &Positions{file: file, generated: strings.Split(code, "\n"), sources: out.sources, mapping: out.mapping}
	script, err := engine.CompileScript(code, file)
	if err != nil {
		e, ok := syntax(err)
		if !ok {
			return nil, err
		}
		text := b.files[entry]
		return nil, fault(text, b.shown(entry), 0, e.Message, "")
	}
	return &Unit{Code: script, TypeScript: isTypeScript(entry), Positions: positions}, nil
}

func isTypeScript(name string) bool { return path.Ext(name) == ".ts" }
func isScript(name string) bool     { return isTypeScript(name) || path.Ext(name) == ".js" }

// bundle joins the files of one plugin.
type bundle struct {
	files       map[string]string
	file, entry string
}

// bundled is what esbuild makes of them.
type bundled struct {
	code    string
	sources []source
	mapping []segment
}

// shown is how messages name one of the files.
func (b *bundle) shown(name string) string {
	if path.Base(b.file) == b.entry {
		return path.Join(path.Dir(b.file), name)
	}
	return path.Join(b.file, name)
}

func (b *bundle) build() (bundled, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{b.entry}, Outfile: "/plugin.js", AbsWorkingDir: "/", Write: false,
		Bundle: true, Format: api.FormatIIFE, GlobalName: moduleName, Platform: api.PlatformNeutral, Target: api.ES2022,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude, TreeShaking: api.TreeShakingFalse,
		LogLevel: api.LogLevelSilent, LogLimit: 1, TsconfigRaw: "{}", Charset: api.CharsetUTF8,
		Plugins: []api.Plugin{{Name: namespace, Setup: b.setup}},
	})
	if len(result.Errors) > 0 {
		return bundled{}, b.fault(result.Errors[0])
	}
	var out bundled
	for _, f := range result.OutputFiles {
		if path.Ext(f.Path) != ".map" {
			out.code = string(f.Contents)
			continue
		}
		var m struct {
			Sources  []string `json:"sources"`
			Mappings string   `json:"mappings"`
		}
		if err := json.Unmarshal(f.Contents, &m); err != nil {
			return bundled{}, fmt.Errorf("read source map: %w", err)
		}
		for _, s := range m.Sources {
			name := strings.TrimPrefix(s, namespace+":")
			out.sources = append(out.sources, source{b.shown(name), newIndex(b.files[name])})
		}
		out.mapping = decodeMappings(m.Mappings)
		for i := range out.mapping {
			out.mapping[i].genLine++ // the line before the bundle
		}
	}
	return out, nil
}

// setup has every file come from the bundle, none from the file system.
func (b *bundle) setup(build api.PluginBuild) {
	build.OnResolve(api.OnResolveOptions{Filter: ".*"}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
		name, refusal := b.resolve(a)
		if refusal != "" {
			return api.OnResolveResult{Errors: []api.Message{{Text: refusal}}}, nil
		}
		return api.OnResolveResult{Path: name, Namespace: namespace}, nil
	})
	build.OnLoad(api.OnLoadOptions{Filter: ".*", Namespace: namespace}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
		text := b.files[a.Path]
		loader := api.LoaderJS
		switch path.Ext(a.Path) {
		case ".ts":
			loader = api.LoaderTS
		case ".json":
			loader = api.LoaderJSON
		}
		return api.OnLoadResult{Contents: &text, Loader: loader}, nil
	})
}

// resolve finds the file that an import names, or says why there is none.
func (b *bundle) resolve(a api.OnResolveArgs) (name, refusal string) {
	switch a.Kind {
	case api.ResolveEntryPoint:
		return a.Path, ""
	case api.ResolveJSDynamicImport:
		return "", "import() is not there: everything is loaded at the start; write `import … from './file.js'` at the top of the file"
	case api.ResolveJSRequireCall, api.ResolveJSRequireResolve:
		return "", "require is not there: a plugin file is an ES module; write `import … from './file.js'`"
	}
	if !strings.HasPrefix(a.Path, "./") && !strings.HasPrefix(a.Path, "../") {
		return "", fmt.Sprintf("%q cannot be imported: a plugin imports nothing but its own files (./file.js); what it needs of the world it reaches through services: inject: ['fs', …]", a.Path)
	}
	at := path.Join(path.Dir(a.Importer), a.Path)
	if at == ".." || strings.HasPrefix(at, "../") {
		return "", fmt.Sprintf("%q is outside of the plugin's folder: a plugin imports nothing but its own files", a.Path)
	}
	candidates := []string{at, at + ".ts", at + ".js", at + ".json", path.Join(at, "index.ts"), path.Join(at, "index.js")}
	if bare, ok := strings.CutSuffix(at, ".js"); ok {
		candidates = append(candidates, bare+".ts") // as TypeScript writes it
	}
	for _, c := range candidates {
		if _, ok := b.files[c]; ok {
			return c, ""
		}
	}
	return "", fmt.Sprintf("the plugin has no file %q; its files are: %s", at, b.list())
}

// list names the files, as many as fit into a line.
func (b *bundle) list() string {
	const most = 20
	names := slices.Sorted(maps.Keys(b.files))
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// fault is what esbuild refuses, with the author's place.
func (b *bundle) fault(m api.Message) *wire.Fault {
	if m.Location == nil {
		return &wire.Fault{Name: "SyntaxError", Code: wire.CodeSyntax, Message: m.Text}
	}
	name := strings.TrimPrefix(m.Location.File, namespace+":")
	text := b.files[name]
	at := newIndex(text).offset(m.Location.Line-1, m.Location.Column)
	said := m.Text
	if strings.HasPrefix(said, "Top-level await") {
		said = "await cannot stand at the top of a plugin file: await in apply"
	}
	hint := ""
	if topReturn.MatchString(text) && strings.Contains(said, "return") {
		hint = strings.TrimSpace(bodyHint)
	}
	return fault(text, b.shown(name), at, said, hint)
}
