package compile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// bundle is the files of one plugin.
type bundle struct {
	files   map[string]string
	scanned map[string]scanned // of scripts
	file    string             // how messages name the plugin
	entry   string
	script  string // the engine's name of it
}

// bundled is what esbuild makes of them.
type bundled struct {
	code    string
	sources []source
	mapping []segment
}

// namespace stands before the paths that esbuild knows.
const namespace = "plugin"

// compile makes one module of the files; of the entry alone when it imports nothing.
func (b *bundle) compile(single bool) (bundled, error) {
	if single {
		return b.transform()
	}
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{b.entry}, Outfile: "/plugin.js", AbsWorkingDir: "/", Write: false,
		Bundle: true, Format: api.FormatESModule, Platform: api.PlatformNeutral, Target: api.ES2022,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude, TreeShaking: api.TreeShakingFalse,
		KeepNames: true, LogLevel: api.LogLevelSilent, TsconfigRaw: "{}", Charset: api.CharsetUTF8,
		Plugins: []api.Plugin{{Name: namespace, Setup: b.setup}},
	})
	if err := b.complaint(result.Errors, result.Warnings); err != nil {
		return bundled{}, err
	}
	var code, sourceMap []byte
	for _, f := range result.OutputFiles {
		if path.Ext(f.Path) == ".map" {
			sourceMap = f.Contents
		} else {
			code = f.Contents
		}
	}
	return b.read(code, sourceMap)
}

// transform is compile for the entry alone.
func (b *bundle) transform() (bundled, error) {
	result := api.Transform(b.files[b.entry]+moduleEnd, api.TransformOptions{
		Loader: loader(b.entry), Target: api.ES2022, Format: api.FormatESModule, Sourcefile: namespace + ":" + b.entry,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude,
		LogLevel: api.LogLevelSilent, TsconfigRaw: "{}", Charset: api.CharsetUTF8,
	})
	if err := b.complaint(result.Errors, result.Warnings); err != nil {
		return bundled{}, err
	}
	return b.read(result.Code, result.Map)
}

// read reads what esbuild wrote.
func (b *bundle) read(code, sourceMap []byte) (bundled, error) {
	var m struct {
		Sources  []string `json:"sources"`
		Mappings string   `json:"mappings"`
	}
	if err := json.Unmarshal(sourceMap, &m); err != nil {
		return bundled{}, fmt.Errorf("read source map: %w", err)
	}
	out := bundled{code: string(code), mapping: decodeMappings(m.Mappings)}
	for _, s := range m.Sources {
		name := strings.TrimPrefix(s, namespace+":")
		out.sources = append(out.sources, source{b.shown(name), newIndex(b.files[name])})
	}
	return out, nil
}

func loader(name string) api.Loader {
	switch path.Ext(name) {
	case ".ts":
		return api.LoaderTS
	case ".json":
		return api.LoaderJSON
	}
	return api.LoaderJS
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
		if isScript(a.Path) {
			text += moduleEnd
		}
		return api.OnLoadResult{Contents: &text, Loader: loader(a.Path)}, nil
	})
}

// resolve finds the file that an import names, or says why there is none.
func (b *bundle) resolve(a api.OnResolveArgs) (name, refusal string) {
	const own = "a plugin imports nothing but its own files"
	switch a.Kind {
	case api.ResolveEntryPoint:
		return a.Path, ""
	case api.ResolveJSDynamicImport:
		return "", "import() is not there: all files are loaded at the start; write `import … from './file.js'` at the top"
	case api.ResolveJSRequireCall, api.ResolveJSRequireResolve:
		return "", "require is not there: a plugin file is an ES module; write `import … from './file.js'`, and reach services with inject: ['fs', …] and ctx"
	}
	switch {
	case a.Path == "." || a.Path == ".." || strings.HasPrefix(a.Path, "./") || strings.HasPrefix(a.Path, "../"):
	case strings.HasPrefix(a.Path, "/"):
		return "", fmt.Sprintf("%q is an absolute path: %s, by paths that begin with ./", a.Path, own)
	default:
		return "", fmt.Sprintf("%q is no file of the plugin: %s (./file.js); reach services with inject: ['fs', …] and ctx", a.Path, own)
	}
	at := path.Join(path.Dir(a.Importer), a.Path)
	if at == ".." || strings.HasPrefix(at, "../") {
		return "", fmt.Sprintf("%q is outside of the plugin's folder: %s", a.Path, own)
	}
	candidates := []string{at, at + ".ts", at + ".js", at + ".json", path.Join(at, "index.ts"), path.Join(at, "index.js")}
	if bare, ok := strings.CutSuffix(at, ".js"); ok {
		candidates = append(candidates, bare+".ts") // as TypeScript writes it
	}
	for _, c := range candidates {
		if _, ok := b.files[c]; !ok {
			continue
		}
		if !isScript(c) && path.Ext(c) != ".json" {
			return "", fmt.Sprintf("%q cannot be imported: only .js, .ts and .json files can", a.Path)
		}
		return c, ""
	}
	refusal = fmt.Sprintf("the plugin has no file %q", at)
	if near := plain.Nearest(at, slices.Sorted(maps.Keys(b.files))); near != "" {
		return "", refusal + fmt.Sprintf("; did you mean %q?", near)
	}
	return "", refusal + "; its files are: " + b.list()
}

// commonJS is esbuild's name for a warning about module.exports in an ES module.
const commonJS = "commonjs-variable-in-esm"

// complaint is the first of what esbuild refuses; nil: nothing.
func (b *bundle) complaint(refused, warned []api.Message) error {
	for _, m := range warned {
		if m.ID == commonJS {
			m.Text = "a plugin file is an ES module, which has no module.exports: write `export default { … }`"
			refused = append(refused, m)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	m := slices.MinFunc(refused, func(x, y api.Message) int { // files are read side by side
		if x.Location == nil || y.Location == nil {
			return 0
		}
		return cmp.Or(cmp.Compare(x.Location.File, y.Location.File), cmp.Compare(x.Location.Line, y.Location.Line), cmp.Compare(x.Location.Column, y.Location.Column))
	})
	said := strings.ReplaceAll(m.Text, `"`+namespace+`:`, `"`)
	if m.Location == nil {
		return &wire.Fault{Name: "SyntaxError", Code: wire.CodeSyntax, Message: b.shown(b.entry) + ": " + said}
	}
	name := strings.TrimPrefix(m.Location.File, namespace+":")
	text := b.files[name]
	// esbuild counts lines from 1, columns in bytes from 0.
	at := newIndex(text).offset(m.Location.Line-1, m.Location.Column)
	return explain(text, b.shown(name), b.scanned[name], problemAt{at, said}, func(text string, at int) string {
		return b.hint(name, text, at, said)
	})
}

var returnLine = regexp.MustCompile(`^\s*return\b`)

// hint is the sentence that fits a common mistake in a module, "" for others.
func (b *bundle) hint(name, text string, at int, said string) string {
	switch {
	case strings.Contains(said, "return") && returnLine.MatchString(lineAt(text, at)):
		return "A plugin file is a module: write `export default { … }` instead of `return { … }`."
	case path.Ext(name) == ".js" && parsesAs(text, api.LoaderTS) && !parsesAs(text, api.LoaderJS):
		return "This is TypeScript: give the file a name that ends in .ts."
	}
	return ""
}

func parsesAs(text string, as api.Loader) bool {
	return len(api.Transform(text+moduleEnd, api.TransformOptions{Loader: as, Target: api.ES2022, LogLevel: api.LogLevelSilent, TsconfigRaw: "{}"}).Errors) == 0
}
