// Package todo is the tool todo_write, with which a model keeps the list of what
// there is to do.
//
// Each call replaces the whole list. It is appended to the log of the agent that
// calls (session.Todo), where people and a resumed session find it; nothing is
// kept here. Without an agent, as for a client of the Model Context Protocol, the
// tool answers all the same, and the list stands in the conversation alone.
//
// Everything is safe for concurrent use; nothing starts a goroutine.
package todo

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

//go:embed todo.md
var description string

// The statuses of an entry.
const (
	pending    = "pending"
	inProgress = "in_progress"
	completed  = "completed"
)

// Plugin returns the plugin that registers the tool, in the scope of the context
// that it is mounted on.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "toolbox/todo",
		Inject: cordis.Require(tool.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			tools, err := tool.Service.Use(c)
			if err != nil {
				return err
			}
			if _, err := tools.Register(c, definition(c)); err != nil {
				return fmt.Errorf("register todo_write: %w", err)
			}
			return nil
		},
	}
}

func definition(c *cordis.Context) *tool.Definition {
	no, yes := false, true
	item := schema.Closed(schema.Object(
		schema.Prop("content", schema.String(fmt.Sprintf("What is to be done; 1 to %d characters.", limits.TodoContent)), schema.Required),
		schema.Prop("status", schema.Enum("Where it stands.", pending, inProgress, completed), schema.Required),
	))
	return &tool.Definition{
		Name: "todo_write", Title: "Update the todo list", Description: strings.TrimSpace(description), Kind: tool.KindOther,
		Annotations: &tool.Annotations{ReadOnly: &no, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("todos", schema.Array(fmt.Sprintf("The whole list, in order; at most %d entries, none to empty it.", limits.TodoItems), item), schema.Required),
		)))),
		Output: tool.Output{Render: render, Schema: schema.Must(schema.Output(schema.Object(
			schema.Prop("pending", schema.Integer("Entries to do."), schema.Required),
			schema.Prop("in_progress", schema.Integer("Entries under way."), schema.Required),
			schema.Prop("completed", schema.Integer("Entries done."), schema.Required),
		)))},
		PresentCall: presentCall, PresentResult: presentResult,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			list, err := read(exec.Arguments)
			if err != nil {
				return tool.Outcome{}, err
			}
			if agents, ok := agent.Service.Get(c); ok {
				if a, ok := agents.For(ctx); ok {
					if _, err := a.Session().Append(list); err != nil {
						return tool.Outcome{}, fmt.Errorf("keep the todo list: %w", err)
					}
				}
			}
			value, err := lossless.From(count(list))
			if err != nil {
				return tool.Outcome{}, fmt.Errorf("write value: %w", err)
			}
			return tool.Outcome{Value: value.Encode()}, nil
		},
	}
}

// read gives the list of a call.
func read(args lossless.Text) (session.Todo, error) {
	list := session.Todo{Todos: []session.TodoItem{}}
	if err := json.Unmarshal(args, &list); err != nil {
		return list, fmt.Errorf("read arguments: %w", err)
	}
	if n := len(list.Todos); n > limits.TodoItems {
		return list, fmt.Errorf("todos has %d entries, more than %d: keep what is left to do, and drop what is completed", n, limits.TodoItems)
	}
	for i, t := range list.Todos {
		switch n := utf8.RuneCountInString(t.Content); {
		case strings.TrimSpace(t.Content) == "":
			return list, fmt.Errorf("todos[%d].content is empty: say what is to be done", i)
		case n > limits.TodoContent:
			return list, fmt.Errorf("todos[%d].content has %d characters, more than %d: say it in a few words", i, n, limits.TodoContent)
		}
	}
	return list, nil
}

// counts is the canonical value.
type counts struct {
	Pending    int `json:"pending"`
	InProgress int `json:"in_progress"`
	Completed  int `json:"completed"`
}

func count(list session.Todo) counts {
	var n counts
	for _, t := range list.Todos {
		switch t.Status {
		case pending:
			n.Pending++
		case inProgress:
			n.InProgress++
		case completed:
			n.Completed++
		}
	}
	return n
}

func render(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var n counts
	if err := json.Unmarshal(value, &n); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	text := fmt.Sprintf("Updated todo list: %d pending, %d in progress, %d completed.", n.Pending, n.InProgress, n.Completed)
	if n.InProgress > 1 {
		text += "\nMore than one entry is in progress. Unless you really work on several at once, keep one, and set the others to pending."
	}
	return []tool.Block{tool.TextBlock(text)}, nil
}

func presentCall(_ context.Context, args lossless.Text) (*tool.Card, error) {
	list, err := read(args)
	if err != nil {
		return nil, err
	}
	n := count(list)
	title := "Todo list: empty"
	if all := len(list.Todos); all > 0 {
		title = fmt.Sprintf("Todo list: %d of %d done", n.Completed, all)
	}
	for _, t := range list.Todos {
		if t.Status == inProgress {
			title += ", now: " + plain.Line(t.Content, limits.Preview)
			break
		}
	}
	return &tool.Card{Generic: &tool.GenericCard{Title: title, Kind: tool.KindOther}}, nil
}

// presentResult shows the list: it stands in the arguments.
func presentResult(_ context.Context, args lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError {
		return nil, nil
	}
	list, err := read(args)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, t := range list.Todos {
		mark := map[string]string{pending: "[ ] ", inProgress: "[>] ", completed: "[x] "}[t.Status]
		lines = append(lines, mark+plain.Line(t.Content, limits.TodoContent))
	}
	card := &tool.GenericCard{Kind: tool.KindOther}
	if lines != nil {
		card.Content = []tool.Block{tool.TextBlock(strings.Join(lines, "\n"))}
	}
	return &tool.Card{Generic: card}, nil
}
