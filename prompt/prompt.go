package prompt

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// Errors of registrations; compare with errors.Is.
var (
	// ErrDuplicate says that a name is taken; the message says by whom.
	ErrDuplicate = errors.New("duplicate name")
	// ErrInvalid says that what was given is no part; the message says why.
	ErrInvalid = errors.New("invalid part")
	// ErrLimit says that a plugin has all the parts that it may have, or that the
	// composition's parts are more than limits.PromptAll.
	ErrLimit = errors.New("too much")
)

// A Section is one part of the system prompt, or of the runtime context. It has a
// text or render.
//
//dsh:name PromptSection
type Section struct {
	// Name identifies it, such as "notes:style"; 1 to 80 characters.
	Name string `json:"name"`
	// Order says where it stands: lower ones come first. The default is 0;
	// harness:identity is at -100, guidance of tools at 100 to 199.
	Order float64 `json:"order,omitempty"`
	// Text is what it says, at most 64 KiB. {{name}} in it is replaced by the value
	// of a variable: provider, model, cwd, or one that is registered.
	Text string `json:"text,omitempty"`
	// Func gives what it says now, "" for nothing. It is asked for each request, has
	// 3 seconds, and must give the same text as long as nothing has changed.
	Func func(ctx context.Context, v View) (string, error) `json:"render,omitempty"`
}

// View is for whom a text is made.
//
//dsh:name PromptView
type View struct {
	// Scope is whose parts are seen; nil is the global layer.
	Scope *tool.Scope `json:"-"`
	// Values are what is known of the request, by name: provider, model, cwd.
	Values map[string]string `json:"values"`
}

// ForPlugins adds to what models are told. What you add is there from the next step
// on, and goes when the function that the method gives is called, or with you. A
// part that throws, is too late or too long is left out.
type ForPlugins interface {
	// Section adds a part to the system prompt. Give section a text that rarely
	// changes: each change makes the provider read everything anew. It throws where
	// the name is taken.
	Section(section Section) (service.Dispose, error)
	// Context adds a part to the runtime context, which is told as a message when it
	// has changed: the place for what changes while the session goes on. Each change
	// of a part costs the whole runtime context once more: no counters, no clock. It
	// throws where the name of the section is taken.
	Context(section Section) (service.Dispose, error)
	// Variable makes {{name}} stand for what value gives, in texts of sections and
	// contexts, not in what render gives. It throws where name is taken or is not of the form [a-z][a-z0-9_]*.
	Variable(name string, value func(ctx context.Context, view View) (string, error)) (service.Dispose, error)
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[*Registry]("prompt", cordis.PluginInterface(func(r *Registry, c *cordis.Context) ForPlugins {
	return &plugins{r, c}
}))

// Draft is a system prompt before it is one text.
//
//dsh:name PromptDraft
type Draft struct {
	View
	// Sections are its parts, in their order.
	Sections []Part `json:"sections"`
}

// Part is one rendered section of a Draft.
//
//dsh:name PromptPart
type Part struct {
	// Name is the section's.
	Name string `json:"name"`
	// Text is what it says.
	Text string `json:"text"`
}

// Assemble makes the system prompt of its sections. Return next(), or a text of
// your own, which then is the system prompt. A plugin's listener that throws, is
// too late or returns no text is passed over.
var Assemble = cordis.NewWaterfall[Draft, string]("prompt/assemble", cordis.ForPlugins())

// What models read of the package itself.
var (
	//go:embed identity.md
	identityText string
	//go:embed snapshot.md
	snapshotText string
	//go:embed nosnapshot.md
	noSnapshotText string
)

// Config configures the plugin.
type Config struct {
	// Persona is the text of the section deployment:persona, a template as any
	// other; "" leaves it out.
	Persona string
}

// Plugin returns the plugin that provides a registry, with the built-in sections.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "prompt",
		Apply: func(c *cordis.Context, _ any) error {
			r := NewRegistry(c)
			if err := builtIn(r, c, cfg); err != nil {
				return err
			}
			if _, err := Service.Provide(c, r); err != nil {
				return fmt.Errorf("provide prompt: %w", err)
			}
			return nil
		},
	}
}

// builtIn adds the sections that are always there.
func builtIn(r *Registry, c *cordis.Context, cfg Config) error {
	if _, err := r.Section(c, Section{Name: "harness:identity", Order: -100, Text: identityText}); err != nil {
		return err
	}
	_, err := r.Section(c, Section{Name: "deployment:persona", Text: cfg.Persona})
	return err
}

// plugins is the registry for the plugin of one context.
type plugins struct {
	r *Registry
	c *cordis.Context
}

var _ ForPlugins = (*plugins)(nil)

// Section implements ForPlugins.
func (p *plugins) Section(section Section) (service.Dispose, error) {
	return disposer(p.r.Section(p.c, section))
}

// Context implements ForPlugins.
func (p *plugins) Context(section Section) (service.Dispose, error) {
	return disposer(p.r.Context(p.c, section))
}

// Variable implements ForPlugins.
func (p *plugins) Variable(name string, value func(ctx context.Context, view View) (string, error)) (service.Dispose, error) {
	return disposer(p.r.Variable(p.c, name, value))
}

func disposer(h *cordis.Handle, err error) (service.Dispose, error) {
	if err != nil {
		return nil, err
	}
	return h.Dispose, nil
}
