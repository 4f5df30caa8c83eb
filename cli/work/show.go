package work

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/serve/terminal"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

func newShow(s command.Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show what was said and done in a session",
		Long: `Show what was said and done in a session: a transcript for reading, or with --json
its events as they are in the log. Of a session that is running it is what was
written until now.`,
		Args: sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), args[0], func(st *jsonl.Store, id string) error {
				l, err := st.Read(cmd.Context(), id)
				if err != nil {
					return fmt.Errorf("read session %s: %w", id, err)
				}
				if asJSON {
					return printEvents(s, l)
				}
				return transcript(cmd.Context(), s, l, st.Holder(id))
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events, a JSON object a line")
	return cmd
}

func printEvents(s command.Streams, l *session.Log) error {
	for _, e := range l.Events(0) {
		if _, err := fmt.Fprintln(s.Out, e.Line()); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// transcript shows a log with the cards of the tools that dsh has.
func transcript(ctx context.Context, s command.Streams, l *session.Log, holder *session.LockedError) error {
	meta := l.Meta()
	root, stop, err := shown(ctx, s, meta.Cwd)
	if err != nil {
		return fmt.Errorf("find how tools show: %w", err)
	}
	defer stop()
	cards, err := newCards(ctx, root, nil)
	if err != nil {
		return err
	}
	title := plain.Line(l.Title(), limits.Preview)
	if title == "" {
		title = "(no title)"
	}
	head := fmt.Sprintf("session %s: %s\n%s, %s\n", meta.ID, title, plain.Line(meta.Cwd, limits.Preview), time.UnixMilli(meta.CreatedAt).Local().Format("2006-01-02 15:04"))
	if meta.ParentSession != "" {
		head += fmt.Sprintf("forked from %s\n", plain.Name(meta.ParentSession))
	}
	if holder != nil {
		head += running(holder) + "\n"
	}
	if err := command.PrintText(s.Out, head); err != nil {
		return err
	}
	out := &firstError{to: s.Out}
	v := terminal.New(terminal.Options{Out: out, Color: terminal.Color(s.Out), Width: terminal.Width(s.Out), Cards: cards, Answers: true})
	for _, e := range l.Events(0) {
		if ctx.Err() != nil || out.err != nil {
			break
		}
		v.Event(e)
	}
	return out.err
}

// shownRows are the tools of dsh run --self, and what they inject.
const shownRows = `
- name: tools
- name: timer
- name: bash
- name: fs
- name: kv
- name: log
- name: web
- name: tasks
- name: prompt
- name: tool-files
- name: tool-shell
- name: tool-web
- name: tool-todo
- name: tool-ask
- name: tool-cordis
`

// shown starts a runtime that only shows what is in a log. No document of a person
// or a project is read for it.
func shown(ctx context.Context, s command.Streams, cwd string) (root *cordis.Context, stop func(), err error) {
	layers := &command.LayerOptions{}
	layers.Only()
	catalog := standard.Catalog(standard.Given{Program: command.Program, Cwd: cwd})
	r, err := layers.Start(ctx, s.Err, time.Second, composition.Options{
		Sources: layers.Sources(document.Layer{Name: "built-in show", Kind: document.Builtin, Text: []byte(shownRows)}), Catalog: catalog,
	})
	if err != nil {
		return nil, nil, err
	}
	place, err := r.Place(ctx, cwd)
	if err == nil {
		var f *cordis.Fiber
		if f, err = r.Root.Mount(place.Plugin(catalog), nil); err == nil {
			err = f.Await(ctx)
		}
	}
	if err != nil {
		r.Stop()
		return nil, nil, err
	}
	return r.Root, r.Stop, nil
}

// firstError remembers the first error of writing, and writes nothing after it.
type firstError struct {
	to  interface{ Write([]byte) (int, error) }
	err error
}

func (w *firstError) Write(b []byte) (int, error) {
	if w.err == nil {
		if _, err := w.to.Write(b); err != nil {
			w.err = fmt.Errorf("print: %w", err)
		}
	}
	return len(b), nil
}

// cards show calls and results as the tools of a scope want it.
type cards struct {
	ctx      context.Context // of the program: cards belong to no call
	registry *tool.Registry
	scope    *tool.Scope
}

var _ terminal.Cards = (*cards)(nil)

func newCards(ctx context.Context, root *cordis.Context, scope *tool.Scope) (*cards, error) {
	registry, err := tool.Service.Use(root)
	if err != nil {
		return nil, fmt.Errorf("find tools: %w", err)
	}
	return &cards{ctx, registry, scope}, nil
}

// Call implements terminal.Cards.
func (c *cards) Call(name string, arguments message.Text) *tool.Card {
	return c.registry.PresentCall(c.ctx, name, c.scope, lossless.Text(arguments))
}

// Result implements terminal.Cards.
func (c *cards) Result(name string, arguments message.Text, r session.Result) *tool.Card {
	return c.registry.PresentResult(c.ctx, name, c.scope, lossless.Text(arguments), resultOf(r))
}

// resultOf is a logged result as the tool gave it, as far as the log has it.
func resultOf(r session.Result) *tool.Result {
	out := &tool.Result{}
	if r.Meta.Kind() != lossless.Null {
		out.Meta = r.Meta.Encode()
	}
	for _, b := range r.Message.Content {
		if b.Type != message.ResultBlock {
			continue
		}
		out.IsError = b.IsError
		for _, inner := range b.Content {
			out.Content = append(out.Content, blockOf(inner))
		}
	}
	if r.Error != nil {
		out.Error = &tool.ErrorInfo{Name: r.Error.Name, Code: r.Error.Code}
	}
	return out
}

func blockOf(b message.Block) tool.Block {
	if b.Type == message.TextBlock {
		return tool.TextBlock(string(b.Text))
	}
	raw, err := lossless.From(b)
	if err != nil {
		return tool.TextBlock("(" + string(b.Type) + ")")
	}
	return tool.Block{Type: string(b.Type), Raw: raw.Encode()}
}
