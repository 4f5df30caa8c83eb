package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod/files"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

// agentServices are there for agents only, so a check has none of them.
var agentServices = []string{"agents", "llm", "prompt", "sessions", "tasks"}

// dryMount mounts a file on a runtime that nobody else has, prints what it registered,
// and disposes all of it.
func dryMount(ctx context.Context, s command.Streams, f files.File, config any) (err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find the working folder: %w", err)
	}
	services := standard.Injectable(standard.Given{Roots: []string{cwd}, Cwd: cwd, Program: command.Program})
	box := sandbox.Config{Exe: command.Program}
	root, err := command.Compose(ctx, io.Discard, limits.CallTimeout, append([]*cordis.Plugin{refusing()}, services...))
	if err != nil {
		return err
	}
	defer command.Stop(root, s.Err)
	registry, err := tool.Service.Use(root)
	if err != nil {
		return fmt.Errorf("find tools: %w", err)
	}
	console := func(text string) { fmt.Fprintf(s.Err, "%s\n", text) }
	var h *files.Host
	var c *cordis.Context
	host, err := root.Mount(&cordis.Plugin{Name: "check", Apply: func(own *cordis.Context, _ any) error {
		c = own
		var err error
		h, err = files.New(own, files.Options{Sandbox: box, Registry: registry, Console: console})
		return err
	}}, nil)
	if err == nil {
		err = host.Await(ctx)
	}
	if err == nil {
		err = host.Err()
	}
	if err != nil {
		return err
	}
	return onHost(ctx, s, h, c, f, config)
}

// slow is what is to be said of how long a plugin takes to start; "": nothing.
func slow(took time.Duration) string {
	if took <= limits.RowsStart {
		return ""
	}
	return fmt.Sprintf("takes %.0f s; dsh reports plugins that take longer than %.0f s", took.Seconds(), limits.RowsStart.Seconds())
}

// onHost opens and mounts the file, reports, and disposes it.
func onHost(ctx context.Context, s command.Streams, h *files.Host, c *cordis.Context, f files.File, config any) error {
	p, err := h.Open(ctx, f)
	if err != nil {
		return err
	}
	if err := stubs(ctx, h, c, p); err != nil {
		h.Discard(p)
		return err
	}
	before := c.Runtime().Digest()
	fiber, err := c.Mount(p, config)
	if err != nil {
		h.Discard(p)
		return err
	}
	begun := time.Now()
	awaited := fiber.Await(ctx)
	took := time.Since(begun)
	err = report(s, fiber)
	if note := slow(took); note != "" {
		fmt.Fprintf(s.Out, "  start: %s\n", note)
	}
	_, disposed := fiber.Dispose(ctx)
	if now := c.Runtime().Digest(); disposed == nil && now != before {
		disposed = fmt.Errorf("it left something behind when it was disposed:\n%s", plain.Cut(now, limits.ErrorText))
	}
	switch {
	case err == nil:
		err = awaited
	case errors.Is(err, cordis.ErrConfig) && config == nil:
		err = fmt.Errorf("%w\nNo row gives it a config. Write one in cordis.yml: {id: …, name: ./%s/%s, config: {…}}", err, pluginsName, plain.Name(filepath.Base(f.Path)))
	}
	return errors.Join(err, disposed)
}

// refusing is a plugin that refuses every act.
func refusing() *cordis.Plugin {
	return &cordis.Plugin{Name: "dry-run", Apply: func(c *cordis.Context, _ any) error {
		return errors.Join(refuse(c, fs.ReadIntent), refuse(c, fs.WriteIntent), refuse(c, fs.EditIntent), refuse(c, fs.RemoveIntent),
			refuse(c, fs.MkdirIntent), refuse(c, bash.RunIntent), refuse(c, web.FetchIntent), refuse(c, web.SearchIntent))
	}}
}

func refuse[T any](c *cordis.Context, ev *cordis.Waterfall[T, tool.Decision]) error {
	_, err := ev.On(c, func(context.Context, T, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		return tool.Deny("dsh plugin check refuses every act: it only looks what the plugin registers. A plugin that acts while it is loaded catches this, or acts later"), nil
	})
	return err
}

// stub is a plugin that provides a service which does nothing.
const stub = `export default { name: 'stub', apply(ctx) {
	const nothing = new Proxy(function () {}, { get: (_t, key) => typeof key === 'symbol' || key === 'then' || key === 'toJSON' ? undefined : nothing, apply: () => undefined });
	ctx.provide(%q, nothing);
} };`

// stubs provides what the plugin requires and nobody provides here.
func stubs(ctx context.Context, h *files.Host, c *cordis.Context, p *cordis.Plugin) error {
	for _, d := range p.Inject {
		if _, there := c.Get(d.Name); there || d.Optional || slices.Contains(agentServices, d.Name) || slices.Contains(p.Provides, d.Name) {
			continue
		}
		f, err := files.From("stub.js", map[string]string{"stub.js": fmt.Sprintf(stub, d.Name)})
		if err != nil {
			return err
		}
		f.Path = "stub of " + plain.Name(d.Name)
		provider, err := h.Open(ctx, f)
		if err != nil {
			return err
		}
		fiber, err := c.Mount(provider, nil)
		if err != nil {
			return err
		}
		if err := fiber.Await(ctx); err != nil {
			return err
		}
		if err := fiber.Err(); err != nil {
			return fmt.Errorf("stand in for the service %s: %w", plain.Name(d.Name), err)
		}
	}
	return nil
}

// report prints what a fiber registered. Its failure is the error.
func report(s command.Streams, fiber *cordis.Fiber) error {
	m := mount.Of(fiber)
	if m == nil {
		return fiber.Err()
	}
	var injects []string
	for _, d := range fiber.Plugin().Inject {
		name := plain.Name(d.Name)
		if d.Optional {
			name += " (optional)"
		}
		injects = append(injects, name)
	}
	fmt.Fprintf(s.Out, "  name: %s\n  injects: %s\n", m.Name(), orNone(injects))
	takes := "nothing"
	if c := m.Config(); c != nil {
		takes = schemaText(string(c.JSON()))
	}
	fmt.Fprintf(s.Out, "  config: %s\n", takes)
	switch fiber.State() {
	case cordis.Failed:
		return fiber.Err()
	case cordis.Pending:
		var waits []string
		for _, missing := range fiber.Waiting().Missing {
			waits = append(waits, plain.Name(missing.Name))
		}
		fmt.Fprintf(s.Out, "  waits for: %s; that is there for agents, or when another plugin provides it, so what it registers then is not known here\n", orNone(waits))
		return nil
	}
	var tools []string
	for _, v := range m.Tools() {
		tools = append(tools, fmt.Sprintf("%s: %s", plain.Name(v.Name), line(v.Description)),
			"  takes "+schemaText(string(v.Parameters.JSON())), "  gives "+schemaText(string(v.Output.JSON())))
	}
	section(s.Out, "tools", tools)
	registered(s, m)
	for _, problem := range m.Faults() {
		fmt.Fprintf(s.Out, "  error meanwhile: %s\n", line(problem))
	}
	return nil
}

// registered prints the services, listeners, timers and what else there is.
func registered(s command.Streams, m *mount.Mount) {
	var listeners, others []string
	timers := 0
	for _, e := range mount.OwnEffects(m.Effects()) {
		switch label := e.Label; {
		case strings.HasPrefix(label, "tools.register("), strings.HasPrefix(label, "ctx.provide("):
		case strings.HasPrefix(label, "ctx.on("):
			listeners = append(listeners, line(strings.Trim(strings.TrimSuffix(strings.TrimPrefix(label, "ctx.on("), ")"), `"`)))
		case label == "ctx.timeout()", label == "ctx.interval()":
			timers++
		default:
			others = append(others, line(label))
		}
	}
	var services []string
	for _, name := range m.Provides() {
		services = append(services, plain.Name(name))
	}
	fmt.Fprintf(s.Out, "  services: %s\n  listens to: %s\n  timers: %d\n", orNone(services), orNone(listeners), timers)
	if len(others) > 0 {
		section(s.Out, "other effects", others)
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// schemaText is a schema in one line.
func schemaText(text string) string { return plain.Line(plain.Visible(text), limits.ErrorText) }
