package ask

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// Errors that an Asker may return; anything else is an error of the call as it is.
var (
	// ErrNobody says that there is no person, or none that can be reached now.
	ErrNobody = errors.New("nobody is there to ask")
	// ErrDeclined says that the person was asked and does not want to answer.
	ErrDeclined = errors.New("the person declined to answer")
)

// An Asker puts questions to a person.
type Asker interface {
	// Ask puts the questions, of which there is at least one, and returns as many
	// answers, in their order. The questions are checked and bounded, but what they
	// say was written by a model: it is to be made safe to show. The end of ctx ends
	// the asking, with its error. Two calls may come at the same time.
	Ask(ctx context.Context, questions []Question) ([]Answer, error)
}

// Service is the key of the service. Mounted plugins cannot inject it: they ask
// through the tools that they register, or not at all.
var Service = cordis.NewService[Asker]("questions")

// Question is one question.
type Question struct {
	Question string `json:"question"`
	// Header names it in a word or two; may be empty.
	Header string `json:"header,omitempty"`
	// Options are the answers to choose from; empty: the answer is free text.
	Options []Option `json:"options,omitempty"`
	// MultiSelect says that several options may be chosen.
	MultiSelect bool `json:"multi_select,omitempty"`
}

// Option is one answer to choose.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// Answer is what the person said to one question: options, words of their own, or
// both. An empty one is a question that was left open.
type Answer struct {
	// Selected are labels of options.
	Selected []string `json:"selected"`
	// Text is what the person wrote.
	Text string `json:"text"`
}

// check says what is wrong with questions of a model.
func check(questions []Question) error {
	switch n := len(questions); {
	case n == 0:
		return errors.New("questions is empty: ask at least one")
	case n > limits.AskQuestions:
		return fmt.Errorf("there are %d questions, more than %d: ask only what you cannot decide", n, limits.AskQuestions)
	}
	for i, q := range questions {
		if err := q.check(fmt.Sprintf("questions[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (q Question) check(at string) error {
	if err := text(at+".question", q.Question, limits.AskText, true); err != nil {
		return err
	}
	if err := text(at+".header", q.Header, limits.AskLabel, false); err != nil {
		return err
	}
	if len(q.Options) > limits.AskOptions {
		return fmt.Errorf("%s has %d options, more than %d", at, len(q.Options), limits.AskOptions)
	}
	if len(q.Options) == 1 {
		return fmt.Errorf("%s has a single option, which is no choice: give two or more, or none for an answer in words", at)
	}
	for i, o := range q.Options {
		in := fmt.Sprintf("%s.options[%d]", at, i)
		if err := text(in+".label", o.Label, limits.AskLabel, true); err != nil {
			return err
		}
		if err := text(in+".description", o.Description, limits.AskDescription, false); err != nil {
			return err
		}
		if slices.ContainsFunc(q.Options[:i], func(other Option) bool { return other.Label == o.Label }) {
			return fmt.Errorf("%s has the label %q of another option: labels must differ, since the answer names them", in, plain.Line(o.Label, limits.Preview))
		}
	}
	return nil
}

func text(at, s string, most int, needed bool) error {
	if needed && strings.TrimSpace(s) == "" {
		return fmt.Errorf("%s is empty", at)
	}
	if n := utf8.RuneCountInString(s); n > most {
		return fmt.Errorf("%s has %d characters, more than %d", at, n, most)
	}
	return nil
}

// checked makes the answers of an asker fit the questions: it says what is wrong,
// and bounds what is long.
func checked(questions []Question, answers []Answer) ([]Answer, error) {
	if len(answers) != len(questions) {
		return nil, fmt.Errorf("the front door gave %d answers to %d questions", len(answers), len(questions))
	}
	out := make([]Answer, len(answers))
	for i, a := range answers {
		for _, label := range a.Selected {
			if !slices.ContainsFunc(questions[i].Options, func(o Option) bool { return o.Label == label }) {
				return nil, fmt.Errorf("the front door gave the answer %q, which is no option of question %d", plain.Line(label, limits.Preview), i+1)
			}
		}
		out[i] = Answer{Selected: append([]string{}, a.Selected...), Text: plain.Cut(strings.TrimSpace(a.Text), limits.AskAnswer)}
	}
	return out, nil
}
