package ask

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/tool"
)

// What the model reads.
var (
	//go:embed ask.md
	description string
	//go:embed nobody.md
	nobody string
)

// Plugin returns the plugin that registers the tool, in the scope of the context
// that it is mounted on. The asker is looked up at each call, so it may come and go.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "toolbox/ask",
		Inject: cordis.Require(tool.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			tools, err := tool.Service.Use(c)
			if err != nil {
				return err
			}
			if _, err := tools.Register(c, definition(c)); err != nil {
				return fmt.Errorf("register ask_user_question: %w", err)
			}
			return nil
		},
	}
}

// value is the canonical value.
type value struct {
	Answers []Answer `json:"answers"`
}

func definition(c *cordis.Context) *tool.Definition {
	yes, no := true, false
	option := schema.Closed(schema.Object(
		schema.Prop("label", schema.String("The answer, in a few words."), schema.Required),
		schema.Prop("description", schema.String("What choosing it entails.")),
	))
	question := schema.Closed(schema.Object(
		schema.Prop("question", schema.String("The question, as the person reads it."), schema.Required),
		schema.Prop("header", schema.String("One or two words that name it, such as Database.")),
		schema.Prop("options", schema.Array(fmt.Sprintf("2 to %d answers to choose from; none for an answer in words.", limits.AskOptions), option)),
		schema.Prop("multi_select", schema.Boolean("Whether several options may be chosen.")),
	))
	return &tool.Definition{
		Name: "ask_user_question", Title: "Ask the person", Description: strings.TrimSpace(description), Kind: tool.KindOther,
		Annotations: &tool.Annotations{ReadOnly: &yes, Destructive: &no, OpenWorld: &no},
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("questions", schema.Array(fmt.Sprintf("1 to %d questions.", limits.AskQuestions), question), schema.Required),
		)))),
		Output: tool.Output{Render: render, Schema: schema.Must(schema.Output(schema.Object(
			schema.Prop("answers", schema.Array("An answer to each question, in their order.", schema.Object(
				schema.Prop("selected", schema.Array("Labels of options.", schema.String("")), schema.Required),
				schema.Prop("text", schema.String("What the person wrote."), schema.Required),
			)), schema.Required),
		)))},
		PresentCall: presentCall, PresentResult: presentResult,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			questions, err := read(exec.Arguments)
			if err != nil {
				return tool.Outcome{}, err
			}
			answers, err := put(ctx, c, questions)
			if err != nil {
				return tool.Outcome{}, err
			}
			v, err := lossless.From(value{answers})
			if err != nil {
				return tool.Outcome{}, fmt.Errorf("write value: %w", err)
			}
			return tool.Outcome{Value: v.Encode()}, nil
		},
	}
}

// put asks whoever there is.
func put(ctx context.Context, c *cordis.Context, questions []Question) ([]Answer, error) {
	asker, ok := Service.Get(c)
	if !ok {
		return nil, errors.New(strings.TrimSpace(nobody))
	}
	answers, err := asker.Ask(ctx, questions)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ask: %w", context.Cause(ctx))
	case errors.Is(err, ErrNobody):
		return nil, errors.New(strings.TrimSpace(nobody))
	case errors.Is(err, ErrDeclined):
		return nil, errors.New("the person declined to answer. Decide by yourself where you can, and say what you assumed; where you cannot, say in your final answer what you need to know")
	case err != nil:
		return nil, fmt.Errorf("ask: %w", err)
	}
	return checked(questions, answers)
}

func read(args lossless.Text) ([]Question, error) {
	var a struct {
		Questions []Question `json:"questions"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return a.Questions, check(a.Questions)
}

// said is an answer as the model reads it.
func (a Answer) said() string {
	switch picked := strings.Join(a.Selected, ", "); {
	case picked == "" && a.Text == "":
		return "(no answer: decide by yourself)"
	case picked == "":
		return a.Text
	case a.Text == "":
		return picked
	default:
		return picked + "; " + a.Text
	}
}

func render(_ context.Context, args, text lossless.Text) ([]tool.Block, error) {
	var v value
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	questions, err := read(args)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("The person answered:")
	for i, a := range v.Answers {
		asked := ""
		if i < len(questions) {
			asked = plain.Line(questions[i].Question, limits.AskText)
		}
		fmt.Fprintf(&b, "\n%d. %s\n   Answer: %s", i+1, asked, strings.ReplaceAll(a.said(), "\n", "\n   "))
	}
	return []tool.Block{tool.TextBlock(b.String())}, nil
}

func presentCall(_ context.Context, args lossless.Text) (*tool.Card, error) {
	questions, err := read(args)
	if err != nil {
		return nil, err
	}
	title := "Ask: " + plain.Line(questions[0].Question, limits.Preview)
	if more := len(questions) - 1; more > 0 {
		title += fmt.Sprintf(" (and %d more)", more)
	}
	return &tool.Card{Generic: &tool.GenericCard{Title: title, Kind: tool.KindOther}}, nil
}

func presentResult(ctx context.Context, args lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError {
		return nil, nil
	}
	blocks, err := render(ctx, args, r.Value)
	if err != nil {
		return nil, err
	}
	return &tool.Card{Generic: &tool.GenericCard{Kind: tool.KindOther, Content: blocks}}, nil
}
