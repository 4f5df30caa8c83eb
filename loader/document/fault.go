package document

import "strings"

// Fault is one thing that is wrong with a document.
type Fault struct {
	File         string // the layer's name
	Line, Column int    // from 1; Column counts characters
	Message      string
	Row          string // the id of the row that alone is concerned, "" if it is not one
	Excerpt      string // the line, bounded and safe to show, and below it a caret; "" where there is none
}

// Error returns "file:line:column: message", and on further lines the excerpt.
func (f Fault) Error() string { return f.Message }

// Faults are all faults of a document or a composition, in the order of their places.
type Faults []Fault

// Error returns one fault after the other, with an empty line between them.
func (f Faults) Error() string {
	var texts []string
	for _, one := range f {
		texts = append(texts, one.Error())
	}
	return strings.Join(texts, "\n\n")
}

// Err returns the faults as an error, nil where there is none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}
