package document

import "github.com/dsh-go/dsh/lossless"

// Options are what Compose asks others.
type Options struct {
	// Env returns an environment variable. nil: none is set.
	Env func(name string) (string, bool)
	// Secret says which variables a project layer may not read; nil means Credential.
	Secret func(name string) bool
	// Open reads an included file; path is as the row says, from.Dir is what it is
	// relative to. The layer's Kind is set by Compose. nil: there are no includes.
	Open func(from *Layer, path string) (Layer, error)
	// May decides whether a project layer may do what it asks for: add the row, or set
	// the field of a row that another layer inserted. An error says why it may not, and
	// becomes a fault. It is not asked about rows that the layer inserted itself. nil: it
	// may do everything.
	May func(a Act) error
}

// Act is what a project layer asks for.
type Act struct {
	Layer *Layer
	Add   bool   // it adds the row; else it sets or deletes Field of it
	Row   Row    // as far as it is known: ID, Name, Layer, Group
	Field string // disabled, config, insert …
}

// Compose lays the documents over each other in their order. The composition is
// never nil: where there are faults it is what is left without the rows, fields and
// documents that they concern. Who must not start with less does not use it then.
func Compose(docs []*Document, o Options) (*Composition, Faults) { return &Composition{}, nil }

// Credential says whether a variable's name looks like that of a credential.
func Credential(name string) bool { return false }

// At returns where a value of the row comes from: a field and what is below it
// ("config", "limits", "0"), or nothing for the row itself. Where nobody gave the
// value it is the place of the nearest above it that somebody gave.
func (r Row) At(path ...string) Origin { return Origin{} }

// Explain returns where a value comes from and what it shadowed, the newest first;
// nothing where nobody gave it.
func (r Row) Explain(path ...string) []Origin { return nil }

// ConfigFault is a fault of the row's config, with its place. path is the way from
// the config to the value. It is also for values that are missing.
func ConfigFault(r Row, path []string, message string) Fault { return Fault{} }

type record struct{}

// Edited is what a row that is inserted has. Fields that are zero are not written.
type Edited struct {
	ID, Name string
	Config   lossless.Value // null: none
	Disabled bool
}

// SetDisabled returns the text with the row's flag set; false removes it. The error
// is Faults where the text is no document, and else says what to do by hand.
func SetDisabled(text []byte, id string, disabled bool) ([]byte, error) { return nil, nil }

// Insert returns the text with a row after its last.
func Insert(text []byte, row Edited) ([]byte, error) { return nil, nil }

// Remove returns the text without the row, the comments right above it and what is
// below it.
func Remove(text []byte, id string) ([]byte, error) { return nil, nil }

// Set returns the text with a value of the row set: a field, or a member of its
// config. Missing objects on the way are made. path is not empty.
func Set(text []byte, id string, path []string, value lossless.Value) ([]byte, error) {
	return nil, nil
}
