package file

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

// Config configures the tools.
type Config struct {
	// Cwd is the folder that relative paths start at, absolute; empty: the first
	// root of the service fs.
	Cwd string
	// Unread lets the model change files that it has not read: no read-before-edit.
	Unread bool
}

//go:embed guidance.md
var guidance string

// guidanceOrder is where the prompt has the guidance; those of tools are at 100 to 199.
const guidanceOrder = 110

// Plugin returns the plugin with the tools read, write, edit, glob and grep. It
// injects tools and fs, and registers into the scope of the context that it is
// mounted on. Where there is a prompt when it starts, it adds guidance to it.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "toolbox-file",
		Inject: append(cordis.Require(tool.Service.Name(), fs.Service.Name()),
			cordis.Dependency{Name: prompt.Service.Name(), Optional: true}, cordis.Dependency{Name: agent.Service.Name(), Optional: true}),
		Apply: func(c *cordis.Context, _ any) error { return start(c, cfg) },
	}
}

// tools is the running plugin.
type tools struct {
	c      *cordis.Context
	fs     fs.FS
	files  fs.ForPlugins
	cwd    string // absolute; "" where fs has no root
	memory *memory

	unguarded bool // Config.Unread
}

func start(c *cordis.Context, cfg Config) error {
	registry, err := tool.Service.Use(c)
	if err != nil {
		return err
	}
	service, err := fs.Service.Use(c)
	if err != nil {
		return err
	}
	if cfg.Cwd != "" && !filepath.IsAbs(cfg.Cwd) {
		return fmt.Errorf("start file tools: cwd %q is not absolute", cfg.Cwd)
	}
	t := &tools{c: c, fs: service, files: service.For(c), cwd: filepath.Clean(cfg.Cwd), memory: newMemory(), unguarded: cfg.Unread}
	if cfg.Cwd == "" {
		t.cwd = ""
		if roots := service.Roots(); len(roots) > 0 {
			t.cwd = roots[0].Path
		}
	}
	if !cfg.Unread {
		if err := t.watch(); err != nil {
			return err
		}
	}
	if p, ok := prompt.Service.Get(c); ok {
		if _, err := p.Section(c, prompt.Section{Name: "tools:file", Order: guidanceOrder, Text: strings.TrimSpace(guidance)}); err != nil {
			return err
		}
	}
	for _, d := range []*tool.Definition{t.readTool(), t.writeTool(), t.editTool(), t.globTool(), t.grepTool()} {
		if _, err := registry.Register(c, d); err != nil {
			return err
		}
	}
	return nil
}

// agent gives the agent on whose behalf ctx acts, if there is one.
func (t *tools) agent(ctx context.Context) (*agent.Agent, bool) {
	agents, ok := agent.Service.Get(t.c)
	if !ok {
		return nil, false
	}
	return agents.For(ctx)
}

// place is where a path of the model leads, for fs.
func (t *tools) place(path string) fs.Path {
	if path == "" || filepath.IsAbs(path) || t.cwd == "" {
		return fs.Path(path)
	}
	return fs.Path(t.cwd + "/" + path)
}

// shown is a path as a person writes it: below cwd it starts there. It is one line.
func (t *tools) shown(path string) string {
	if t.cwd != "" && path != "" {
		if !filepath.IsAbs(path) {
			path = t.cwd + "/" + path
		}
		path = filepath.Clean(path)
		if path == t.cwd {
			path = "."
		} else if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(t.cwd, "/")+"/"); ok {
			path = rest
		}
	}
	return plain.Line(path, limits.FSPath)
}

// failure is an error of fs in the words of a tool: the doing is such as "read".
func (t *tools) failure(doing, path string, err error) error {
	code := service.CodeOf(err)
	if code == "" {
		return err
	}
	text := err.Error()
	if code == fs.CodePermissionDenied || code == fs.CodeNotObserved { // the words of a policy
		return &tool.Error{Name: errorName, Code: code, Message: text, Err: err}
	}
	if at := strings.Index(text, `": `); at >= 0 && strings.Contains(text[:at], ` "`) && !strings.ContainsAny(text[:strings.Index(text, ` "`)], " .:") {
		text = text[at+3:] // without the method and the path
	}
	switch code {
	case fs.CodeNotFound:
		text = "there is no such file or folder"
	case fs.CodeSandboxDenied, fs.CodeReadOnly:
		text = strings.Replace(text, "plugins", "tools", 1)
	}
	return failed(code, err, "%s %s: %s", doing, strconv.Quote(t.shown(path)), text)
}

const errorName = "FileError"

// failed makes an error of a tool.
func failed(code string, cause error, format string, args ...any) error {
	return &tool.Error{Name: errorName, Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}

// arguments reads what a tool was called with.
func arguments[T any](exec *tool.Exec) (args T, err error) {
	return decoded[T](exec.Arguments)
}

func decoded[T any](text lossless.Text) (v T, err error) {
	if err := json.Unmarshal(text, &v); err != nil {
		return v, fmt.Errorf("read arguments: %w", err)
	}
	return v, nil
}

// integer is an argument that is one, however it is written: 3, 3.0 or 3e0.
type integer int

// UnmarshalJSON reads a number; one beyond what can be meant is the largest.
func (n *integer) UnmarshalJSON(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("%s is not an integer", text)
	}
	*n = integer(max(min(f, math.MaxInt32), math.MinInt32))
	return nil
}

// outcome is the value of a body.
func outcome(v any) (tool.Outcome, error) {
	value, err := lossless.From(v)
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("write value: %w", err)
	}
	return tool.Outcome{Value: value.Encode()}, nil
}

// rendered makes a renderer of a function from a value to a text.
func rendered[T any](text func(T) string) func(context.Context, lossless.Text, lossless.Text) ([]tool.Block, error) {
	return func(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
		v, err := decoded[T](value)
		if err != nil {
			return nil, err
		}
		return []tool.Block{tool.TextBlock(text(v))}, nil
	}
}

// carded keeps the card of a result as its meta, where a replay finds it.
func carded[T any](card func(T) *tool.Card) func(context.Context, lossless.Text, lossless.Text) (lossless.Text, error) {
	return func(_ context.Context, _, value lossless.Text) (lossless.Text, error) {
		v, err := decoded[T](value)
		if err != nil {
			return nil, err
		}
		c := card(v)
		if c != nil && c.Validate() == nil {
			return json.Marshal(c)
		}
		return nil, nil // a result without a card is shown as its text
	}
}

// cardOf gives the card that carded kept.
func cardOf(_ context.Context, _ lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError || r.Meta == nil {
		return nil, nil
	}
	card := &tool.Card{}
	if err := json.Unmarshal(r.Meta, card); err != nil {
		return nil, err
	}
	return card, nil
}

// called makes the card of a call.
func called[T any](card func(T) *tool.Card) func(context.Context, lossless.Text) (*tool.Card, error) {
	return func(_ context.Context, args lossless.Text) (*tool.Card, error) {
		v, err := decoded[T](args)
		if err != nil {
			return nil, err
		}
		return card(v), nil
	}
}

// always says that calls may overlap.
func always(context.Context, lossless.Text) bool { return true }

func parameters(properties ...schema.Property) *schema.Schema {
	return schema.Must(schema.Parameters(schema.Closed(schema.Object(properties...))))
}

func output(properties ...schema.Property) *schema.Schema {
	return schema.Must(schema.Output(schema.Object(properties...)))
}

// envelope is the form of results about one place.
func envelope(path, kind, body string) string {
	return fmt.Sprintf("<path>%s</path>\n<type>%s</type>\n<content>\n%s\n</content>", path, kind, body)
}

// count says how many there are: "1 line", "1,234 lines".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		return number(n) + " " + what + "es"
	}
	return number(n) + " " + what + "s"
}

// number writes a number with its thousands apart.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// ended tells that an error is only the end of ctx.
func ended(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// Settings are the plugin's config in a cordis.yml document.
type Settings struct {
	Unread bool `json:"unread" default:"false" doc:"Let the model change files that it has not read."`
}
