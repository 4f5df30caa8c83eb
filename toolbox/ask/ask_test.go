package ask

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// asker answers by a function.
type asker func(ctx context.Context, questions []Question) ([]Answer, error)

func (a asker) Ask(ctx context.Context, questions []Question) ([]Answer, error) {
	return a(ctx, questions)
}

func answering(answers ...Answer) asker {
	return func(context.Context, []Question) ([]Answer, error) { return answers, nil }
}

func failing(err error) asker {
	return func(context.Context, []Question) ([]Answer, error) { return nil, err }
}

// newRegistry is a runtime with the tool, and an asker if there is one.
func newRegistry(t *testing.T, a Asker) (*tool.Registry, *cordis.Context) {
	t.Helper()
	root := cordis.New()
	plugins := []*cordis.Plugin{tool.Plugin(), Plugin()}
	if a != nil {
		plugins = append(plugins, &cordis.Plugin{Name: "door", Apply: func(c *cordis.Context, _ any) error {
			_, err := Service.Provide(c, a)
			return err
		}})
	}
	for _, p := range plugins {
		f, err := root.Mount(p, nil)
		if err == nil {
			err = f.Await(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tools, _ := tool.Service.Get(root)
	return tools, root
}

func call(ctx context.Context, tools *tool.Registry, args string) *tool.Result {
	return tools.Execute(ctx, tool.Call{Name: "ask_user_question", Arguments: lossless.Text(args)})
}

func content(r *tool.Result) string {
	var all []string
	for _, b := range r.Content {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

const two = `{"questions":[
	{"question":"Which database?","header":"Database","options":[{"label":"SQLite","description":"one file"},{"label":"Postgres"}]},
	{"question":"Which targets?","options":[{"label":"linux"},{"label":"darwin"}],"multi_select":true}]}`

const nobodyText = "Error: nobody is there to answer questions: this session runs without a person. Decide by yourself: take the choice that fits the task best and is the easiest to change later, go on with it, and say in your final answer what you assumed and why. Do not ask again."

func TestDefinition(t *testing.T) {
	d := definition(nil)
	golden(t, "definition", fmt.Sprintf("%s\n%s\n%s\n", d.Name, d.Description, d.Parameters.JSON()))
}

func TestTexts(t *testing.T) {
	words := `{"questions":[{"question":"Why?"}]}`
	for name, c := range map[string]struct {
		asker Asker
		args  string
		want  string
	}{
		"options":        {answering(Answer{Selected: []string{"SQLite"}}, Answer{Selected: []string{"linux", "darwin"}}), two, "The person answered:\n1. Which database?\n   Answer: SQLite\n2. Which targets?\n   Answer: linux, darwin"},
		"words":          {answering(Answer{Text: "because\nof that "}), words, "The person answered:\n1. Why?\n   Answer: because\n   of that"},
		"both-and-none":  {answering(Answer{Selected: []string{"SQLite"}, Text: "for now"}, Answer{}), two, "The person answered:\n1. Which database?\n   Answer: SQLite; for now\n2. Which targets?\n   Answer: (no answer: decide by yourself)"},
		"no-asker":       {nil, words, nobodyText},
		"nobody":         {failing(fmt.Errorf("no terminal: %w", ErrNobody)), words, nobodyText},
		"declined":       {failing(ErrDeclined), words, "Error: the person declined to answer. Decide by yourself where you can, and say what you assumed; where you cannot, say in your final answer what you need to know"},
		"failed":         {failing(errors.New("boom")), words, "Error: ask: boom"},
		"wrong-number":   {answering(), words, "Error: the front door gave 0 answers to 1 questions"},
		"foreign-option": {answering(Answer{Selected: []string{"Oracle"}}, Answer{}), two, `Error: the front door gave the answer "Oracle", which is no option of question 1`},
	} {
		t.Run(name, func(t *testing.T) {
			tools, _ := newRegistry(t, c.asker)
			if diff := cmp.Diff(c.want, content(call(t.Context(), tools, c.args))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestValue(t *testing.T) {
	tools, _ := newRegistry(t, answering(Answer{Selected: []string{"SQLite"}}, Answer{Text: strings.Repeat("x", 2*limits.AskAnswer)}))
	r := call(t.Context(), tools, two)
	if n := len(r.Value); n > limits.AskAnswer+200 || !strings.HasPrefix(string(r.Value), `{"answers":[{"selected":["SQLite"],"text":""},{"selected":[],"text":"xxx`) {
		t.Errorf("%d bytes: %.200s", n, r.Value)
	}
}

func TestQuestionsAreChecked(t *testing.T) {
	tools, _ := newRegistry(t, asker(func(context.Context, []Question) ([]Answer, error) {
		t.Error("asked")
		return nil, nil
	}))
	long := strings.Repeat("x", 3000)
	for name, c := range map[string]struct{ questions, want string }{
		"none":             {``, "questions is empty: ask at least one"},
		"too-many":         {strings.Repeat(`{"question":"a"},`, limits.AskQuestions) + `{"question":"a"}`, "there are 11 questions, more than 10: ask only what you cannot decide"},
		"empty":            {`{"question":" "}`, "questions[0].question is empty"},
		"long":             {`{"question":"a"},{"question":"` + long + `"}`, "questions[1].question has 3000 characters, more than 2000"},
		"long-header":      {`{"question":"a","header":"` + long + `"}`, "questions[0].header has 3000 characters, more than 200"},
		"one-option":       {`{"question":"a","options":[{"label":"b"}]}`, "questions[0] has a single option, which is no choice: give two or more, or none for an answer in words"},
		"empty-label":      {`{"question":"a","options":[{"label":"b"},{"label":""}]}`, "questions[0].options[1].label is empty"},
		"same-label":       {`{"question":"a","options":[{"label":"b"},{"label":"b"}]}`, `questions[0].options[1] has the label "b" of another option: labels must differ, since the answer names them`},
		"long-description": {`{"question":"a","options":[{"label":"b"},{"label":"c","description":"` + long + `"}]}`, "questions[0].options[1].description has 3000 characters, more than 1000"},
		"many-options":     {`{"question":"a","options":[` + strings.Repeat(`{"label":"b"},`, limits.AskOptions) + `{"label":"b"}]}`, "questions[0] has 21 options, more than 20"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff("Error: "+c.want, content(call(t.Context(), tools, `{"questions":[`+c.questions+`]}`))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAsker: it gets the questions as they were asked, knows who asks, and its wait
// ends with the call.
func TestAsker(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	scope := tool.NewScope("s", nil)
	tools, _ := newRegistry(t, asker(func(ctx context.Context, q []Question) ([]Answer, error) {
		want := []Question{
			{Question: "Which database?", Header: "Database", Options: []Option{{"SQLite", "one file"}, {"Postgres", ""}}},
			{Question: "Which targets?", Options: []Option{{Label: "linux"}, {Label: "darwin"}}, MultiSelect: true},
		}
		if diff := cmp.Diff(want, q); diff != "" {
			t.Error(diff)
		}
		if tool.ActorOf(ctx).Scope != scope {
			t.Error("who asks?")
		}
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	r := tools.Execute(ctx, tool.Call{Name: "ask_user_question", Scope: scope, Arguments: lossless.Text(two)})
	if !r.IsError || r.Error.Code != tool.CodeAborted {
		t.Errorf("%+v", r.Error)
	}
}

func TestCards(t *testing.T) {
	tools, _ := newRegistry(t, answering(Answer{Selected: []string{"SQLite"}}, Answer{Text: "all"}))
	args := lossless.Text(two)
	for _, c := range []struct {
		card *tool.Card
		want string
	}{
		{tools.PresentCall(t.Context(), "ask_user_question", nil, args), `{"type":"generic","title":"Ask: Which database? (and 1 more)","kind":"other"}`},
		{tools.PresentResult(t.Context(), "ask_user_question", nil, args, call(t.Context(), tools, two)),
			`{"type":"generic","kind":"other","content":[{"type":"text","text":"The person answered:\n1. Which database?\n   Answer: SQLite\n2. Which targets?\n   Answer: all"}]}`},
	} {
		got, err := c.card.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Error(diff)
		}
	}
}
