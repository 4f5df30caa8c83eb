package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/gen/surface"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/tool"
)

// live is a runtime with the toolset and with every service of a surface, whose
// values are nil: nothing calls them.
type live struct {
	dir      string // of the module
	root     *cordis.Context
	registry *tool.Registry
}

// start makes the catalog that this program carries that of s, and a runtime
// that reports on it.
func start(ctx context.Context, dir string, s *surface.Surface) (*live, error) {
	catalog.Services, catalog.Events, catalog.Types, catalog.Context = s.Services, s.Events, s.Types, Verbs
	root := cordis.New()
	services := &cordis.Plugin{Name: "services", Apply: func(c *cordis.Context, _ any) error {
		for _, v := range s.Services {
			if v.Key == tool.Service.Name() {
				continue
			}
			if _, err := c.Provide(v.Key, nil); err != nil {
				return fmt.Errorf("provide %s: %w", v.Key, err)
			}
		}
		return nil
	}}
	for _, p := range []*cordis.Plugin{tool.Plugin(), services, selfmod.Plugin(selfmod.Config{})} {
		f, err := root.Mount(p, nil)
		if err == nil {
			err = f.Await(ctx)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start %s: %w", p.Name, err), (&live{root: root}).stop(ctx))
		}
	}
	registry, err := tool.Service.Use(root)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find tools: %w", err), (&live{root: root}).stop(ctx))
	}
	return &live{dir, root, registry}, nil
}

func (l *live) stop(ctx context.Context) error {
	_, err := l.root.Fiber().Dispose(ctx)
	return err
}

// report runs cordis_inspect.
func (l *live) report(ctx context.Context, args string) (string, error) {
	r := l.registry.Execute(ctx, tool.Call{Name: "cordis_inspect", Arguments: lossless.Text(args)})
	if r.IsError || len(r.Content) == 0 {
		return "", fmt.Errorf("run cordis_inspect %s: %v", args, r.Error)
	}
	return r.Content[0].Text, nil
}

const toolsText = "What a model sees of the three tools: their names, titles, descriptions and parameters, and what\n" +
	"their values are. [toolset.md](toolset.md) says what that costs."

// toolsPage is docs/reference/tools.md.
func (l *live) toolsPage() (string, error) {
	var b strings.Builder
	b.WriteString(head("Tools", toolsText))
	for _, v := range l.registry.List(nil) {
		parameters, err := indented(v.Parameters)
		if err != nil {
			return "", err
		}
		output, err := indented(v.Output)
		if err != nil {
			return "", err
		}
		hints, err := json.Marshal(v.Annotations)
		if err != nil {
			return "", fmt.Errorf("write annotations: %w", err)
		}
		fmt.Fprintf(&b, "\n## %s\n\nTitle: %s. Kind: %s. Annotations: `%s`.\n\n### Description\n\n%s\n\n### Parameters\n\n%s\n### Value\n\n%s",
			v.Name, v.Title, v.Kind, hints, quoted(v.Description), parameters, output)
	}
	return b.String(), nil
}

// quoted is a text as a quotation, whose own Markdown stays what it is.
func quoted(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("> "+l, " ")
	}
	return strings.Join(lines, "\n")
}

func indented(s *schema.Schema) (string, error) {
	if s == nil {
		return "None.\n", nil
	}
	var b bytes.Buffer
	if err := json.Indent(&b, s.JSON(), "", "  "); err != nil {
		return "", fmt.Errorf("write schema: %w", err)
	}
	return "```json\n" + b.String() + "\n```\n", nil
}

// part is one text that a model reads.
type part struct {
	name   string
	what   string
	when   string
	budget int // tokens
	text   func(ctx context.Context, l *live) (string, error)
}

// definition is what a request carries of a tool: name, description, parameters.
func definition(name string) func(context.Context, *live) (string, error) {
	return func(_ context.Context, l *live) (string, error) {
		v, ok := l.registry.Get(name, nil)
		if !ok {
			return "", fmt.Errorf("find tool %s: there is none", name)
		}
		return v.Name + v.Description + string(v.Parameters.JSON()), nil
	}
}

func report(args string) func(context.Context, *live) (string, error) {
	return func(ctx context.Context, l *live) (string, error) { return l.report(ctx, args) }
}

// instructions are what dsh mcp tells a client at the start.
func instructions(_ context.Context, l *live) (string, error) {
	text, err := os.ReadFile(filepath.Join(l.dir, "serve", "mcp", "instructions.md"))
	if err != nil {
		return "", fmt.Errorf("read instructions: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// parts are measured in bytes/4. A budget is raised only with a reason in the
// commit: everything here is read by every model, again and again.
var parts = []part{
	{"instructions", "what the server is for (MCP)", "at the start", 350, instructions},
	{"cordis_inspect", "name, description, parameters", "in every request", 600, definition("cordis_inspect")},
	{"cordis_mount", "name, description, parameters", "in every request", 2400, definition("cordis_mount")},
	{"cordis_unmount", "name, description, parameters", "in every request", 250, definition("cordis_unmount")},
	{`cordis_inspect {}`, "all sections, each cut to its share", "when called", limits.ReportAll / 4, report(`{}`)},
	{`cordis_inspect {"what":"api"}`, "every method, every shape that it mentions", "when called", limits.ReportAPI / 4, report(`{"what":"api"}`)},
	{`cordis_inspect {"what":"events"}`, "every event, every shape that it mentions", "when called", 1500, report(`{"what":"events"}`)},
}

const toolsetText = "What the toolset costs the model that uses it, in tokens (bytes/4), with all services running and\n" +
	"nothing mounted. What passes its budget ends the generator, so that the texts do not creep. The texts\n" +
	"themselves are in [tools.md](tools.md), [services.md](services.md) and [events.md](events.md)."

// bounded says what depends on what is mounted.
var bounded = fmt.Sprintf(`
What depends on the plugin has a bound instead: the answer of cordis_mount %s characters beside the
schemas of its tools, the receipt of cordis_unmount %s, a report on one name %s, on everything %s.
The source of a mount is shown whole, and an error's text has at most %s.
`, surface.Count(limits.MountAnswer), surface.Count(limits.Receipt), surface.Count(limits.ReportName), surface.Count(limits.ReportAll), surface.Count(limits.ErrorText))

const cacheText = `
## Effect on the prompt cache

The three definitions are constant: they come first in the order of tools, and no mount, service or
event changes a byte of them. The list of services and the signatures are not part of a description;
they are read with cordis_inspect when they are needed, and stand in the conversation as that call's
result, where later requests find them cached.

A mounted tool is a change of the list of tools. Its definition is appended behind all that were there,
in the order of mounts and of their registrations, so the prefix of the request keeps its bytes up to
there. Providers that put the tools before the conversation compute the conversation again once, at
the next request; from then on it is cached again. Parking, restarting and a worker that dies leave
the order alone. Unmounting removes a definition, and everything behind it moves once.

So a plugin that registers its tools once, when it is mounted, costs one change; one that adds and
removes tools while it runs costs one each time. Whoever wants a stable prefix mounts what is needed
at the beginning, or registers one tool with a parameter instead of many.
`

// toolsetPage is docs/reference/toolset.md. It fails where a budget is passed.
func (l *live) toolsetPage(ctx context.Context, s *surface.Surface) (string, error) {
	var b strings.Builder
	b.WriteString(head("The toolset", toolsetText))
	b.WriteString("\n| Part | What the model sees | When | Tokens | Budget |\n|---|---|---|---|---|\n")
	all := slices.Clone(parts)
	for _, v := range s.Services {
		args := fmt.Sprintf(`{"what":"api","name":%q}`, v.Key)
		all = append(all, part{"cordis_inspect " + args, "its methods with their docs", "when called", limits.ReportName / 4, report(args)})
	}
	var errs []error
	for _, p := range all {
		text, err := p.text(ctx, l)
		if err != nil {
			return "", err
		}
		tokens := (len(text) + 3) / 4
		if tokens > p.budget {
			errs = append(errs, fmt.Errorf("%s costs %d tokens, and its budget is %d: shorten it, or raise the budget in internal/gen/reference/toolset.go and say why", p.name, tokens, p.budget))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.name, p.what, p.when, surface.Count(int64(tokens)), surface.Count(int64(p.budget)))
	}
	b.WriteString(bounded + cacheText)
	return b.String(), errors.Join(errs...)
}
