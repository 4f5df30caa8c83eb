package prompt

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// template is a text with references to variables.
type template []piece

// piece is text, or a reference.
type piece struct {
	text     string
	variable string // its name; "": text
}

// parseTemplate reads a text. Braces that nothing closes are text.
func parseTemplate(text string) (template, error) {
	var t template
	for {
		before, rest, found := strings.Cut(text, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		if !found || !closed {
			break
		}
		if !variableName(name) {
			return nil, fmt.Errorf("the reference %q is not of the form {{name}}, where a name begins with a to z and has a to z, 0 to 9 and _, without spaces",
				plain.Cut("{{"+name+"}}", limits.Name))
		}
		if before != "" {
			t = append(t, piece{text: before})
		}
		t = append(t, piece{variable: name})
		text = after
	}
	if text != "" {
		t = append(t, piece{text: text})
	}
	return t, nil
}

// variableName tells whether s is of the form [a-z][a-z0-9_]*, and not too long.
func variableName(s string) bool {
	for n, c := range []byte(s) {
		letter := 'a' <= c && c <= 'z'
		if !letter && (n == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= limits.Name
}

// render puts values in the place of references.
func (t template) render(value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for _, p := range t {
		text := p.text
		if p.variable != "" {
			var err error
			if text, err = value(p.variable); err != nil {
				return "", err
			}
		}
		if b.Len()+len(text) > limits.PromptText {
			return "", tooLong(b.Len() + len(text))
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func tooLong(size int) error {
	return fmt.Errorf("its text has %d bytes or more: at most %d can be given", size, limits.PromptText)
}
