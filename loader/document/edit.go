package document

import (
	"errors"

	"github.com/dsh-go/dsh/lossless"
)

// ErrNoRow says that a document has no row with an id.
var ErrNoRow = errors.New("no such row")

// ErrByHand says that an edit cannot be made without losing something; the error
// tells what to write.
var ErrByHand = errors.New("edit this by hand")

// Edited is what a row that is inserted has. Fields that are zero are not written.
type Edited struct {
	ID, Name string
	Config   lossless.Value // null: none
	Disabled bool
}

// SetDisabled returns the text with the row's flag set; false removes it. The error
// is Faults where the text is no document, and else says what to do by hand.
func SetDisabled(text []byte, id string, disabled bool) ([]byte, error) { return nil, ErrByHand }

// Insert returns the text with a row after its last.
func Insert(text []byte, row Edited) ([]byte, error) { return nil, ErrByHand }

// Remove returns the text without the row, the comments right above it and what is
// below it.
func Remove(text []byte, id string) ([]byte, error) { return nil, ErrByHand }

// Set returns the text with a value of the row set: a field, or a member of its
// config. Missing objects on the way are made. path is not empty.
func Set(text []byte, id string, path []string, value lossless.Value) ([]byte, error) {
	return nil, ErrByHand
}
