package terminal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/toolbox/ask"
)

// A Person answers at the terminal: whether something may happen, and what a model
// asks. One question is on the screen at a time; others wait, or end with their
// context.
type Person struct {
	view  *View
	input *Input
	turn  chan struct{} // holds a token while nobody is asked
}

var _ ask.Asker = (*Person)(nil)

// NewPerson returns the person who sees the view and types into the input.
func NewPerson(v *View, in *Input) *Person {
	p := &Person{view: v, input: in, turn: make(chan struct{}, 1)}
	p.turn <- struct{}{}
	return p
}

// begin waits until the screen is free.
func (p *Person) begin(ctx context.Context) (end func(), err error) {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.view.hold(true)
	return func() {
		p.view.hold(false)
		p.turn <- struct{}{}
	}, nil
}

// Approve asks whether something may happen. It is a permission.Asker. Where
// nothing more can be typed it says no.
func (p *Person) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	end, err := p.begin(ctx)
	if err != nil {
		return permission.Answer{}, err
	}
	defer end()
	who := "the model"
	if q.Mount != "" {
		who = "temporary plugin " + plain.Line(plain.Visible(q.Mount), limits.Name+20)
	}
	p.view.lines(line{yellow, fmt.Sprintf("? %s wants to: %s", who, plain.Line(plain.Visible(q.Summary), limits.ErrorText))})
	cut := p.view.detail(q, shownCode)
	choices := "[y]es"
	if q.Remember != "" {
		choices += ", [s] yes and for this session: " + plain.Line(plain.Visible(q.Remember), limits.ErrorText)
	}
	choices += ", [n]o (n and a reason tells the model why), [q] no and stop"
	if cut {
		choices += ", [v]iew all"
	}
	for {
		p.view.lines(line{bold, choices})
		text, err := p.line(ctx)
		if errors.Is(err, ErrEnded) {
			return permission.Answer{Stop: true, Reason: "nobody answers at the terminal"}, nil
		}
		if err != nil {
			return permission.Answer{}, err
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(word) {
		case "y", "yes":
			return permission.Answer{Allow: true}, nil
		case "s", "session":
			if q.Remember != "" {
				return permission.Answer{Allow: true, Remember: true}, nil
			}
		case "n", "no":
			return permission.Answer{Reason: plain.Line(rest, limits.ErrorText)}, nil
		case "q", "quit", "stop":
			return permission.Answer{Stop: true, Reason: plain.Line(rest, limits.ErrorText)}, nil
		case "v", "view":
			p.view.detail(q, math.MaxInt32)
		}
	}
}

// Ask puts a model's questions. An empty line leaves one open; the end of the
// input declines.
func (p *Person) Ask(ctx context.Context, questions []ask.Question) ([]ask.Answer, error) {
	end, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	answers := make([]ask.Answer, 0, len(questions))
	for _, q := range questions {
		p.view.question(q)
		text, err := p.line(ctx)
		if errors.Is(err, ErrEnded) {
			return nil, ask.ErrDeclined
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, answerOf(q, text))
	}
	return answers, nil
}

func (p *Person) line(ctx context.Context) (string, error) {
	p.view.prompt("> ")
	return p.input.Line(ctx)
}

// answerOf reads numbers of options, separated by commas or spaces; anything else
// is an answer in words.
func answerOf(q ask.Question, text string) ask.Answer {
	text = strings.TrimSpace(text)
	words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if len(words) == 0 || len(words) > 1 && !q.MultiSelect {
		return ask.Answer{Text: text}
	}
	var chosen []string
	for _, w := range words {
		n, err := strconv.Atoi(w)
		if err != nil || n < 1 || n > len(q.Options) {
			return ask.Answer{Text: text}
		}
		chosen = append(chosen, q.Options[n-1].Label)
	}
	return ask.Answer{Selected: chosen}
}

// hold keeps the line that is overwritten away while a person is asked.
func (v *View) hold(on bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
	v.quiet = on
}

func (v *View) lines(lines ...line) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, l := range lines {
		v.print(l)
	}
}

func (v *View) prompt(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = v.o.Out.Write([]byte(v.styled(line{bold, text}))) // nobody can be told
}

// detail shows what a question is about, with everything in it to be seen, and says
// whether some of it was left out.
func (v *View) detail(q permission.Question, most int) (cut bool) {
	text, width := plain.Visible(q.Detail), v.o.Width-4
	cut = count(text) > most || wide(text, width)
	var diffs []tool.FileDiff
	if q.Card != nil && q.Card.Diff != nil {
		diffs = q.Card.Diff.Diffs
		cut = cut || len(diffs) > shownItems
	}
	for _, d := range diffs {
		texts := []string{d.NewText}
		if d.OldText != nil {
			texts = append(texts, *d.OldText)
		}
		for _, t := range texts {
			cut = cut || count(t) > most/2 || wide(plain.Visible(t), width-2)
		}
	}
	if most > shownCode {
		width = math.MaxInt32 / 2
	}
	var shown []line
	if len(diffs) > 0 {
		shown = diffLines(q.Card.Diff, width, most)
	}
	shown = append(shown, block(text, "", width, most)...)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.indented(shown)
	return cut
}

func count(text string) int { return strings.Count(strings.Trim(text, "\n"), "\n") + 1 }

// wide reports whether a line of a text is cut at a width.
func wide(text string, width int) bool {
	for row := range strings.SplitSeq(text, "\n") {
		if len(row)+3*strings.Count(row, "\t") > width {
			return true
		}
	}
	return false
}

func (v *View) question(q ask.Question) {
	lines := []line{{yellow, "? " + plain.Line(q.Header, limits.Name)}}
	if q.Header == "" {
		lines[0].text = "? the model asks:"
	}
	lines = append(lines, block(q.Question, bold, v.o.Width-2, shownCode)...)
	for i, o := range q.Options {
		text := fmt.Sprintf("  %d  %s", i+1, plain.Line(o.Label, limits.Preview))
		if o.Description != "" {
			text += " — " + plain.Line(o.Description, limits.Preview)
		}
		lines = append(lines, line{"", text})
	}
	switch {
	case q.MultiSelect && len(q.Options) > 0:
		lines = append(lines, line{dim, "numbers of the options, or words of your own"})
	case len(q.Options) > 0:
		lines = append(lines, line{dim, "the number of an option, or words of your own"})
	}
	v.lines(lines...)
}

// Confirm shows a text and asks a question about it, which only yes answers with
// true. Where nothing more can be typed the answer is no.
func (p *Person) Confirm(ctx context.Context, text, question string) (bool, error) {
	end, err := p.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	for l := range strings.Lines(text) {
		p.view.lines(line{"", plain.Terminal(strings.TrimRight(l, "\n"))})
	}
	p.view.lines(line{bold, question + " [y]es, [n]o"})
	answer, err := p.line(ctx)
	if errors.Is(err, ErrEnded) {
		return false, nil
	}
	word := strings.ToLower(strings.TrimSpace(answer))
	return word == "y" || word == "yes", err
}
