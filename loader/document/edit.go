package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// ErrNoRow says that a document has no row with an id.
var ErrNoRow = errors.New("no such row")

// ErrByHand says that an edit cannot be made without losing something; the error
// tells what to write.
var ErrByHand = errors.New("it has to be edited by hand")

// Edited is what a row that is inserted has. Fields that are zero are not written.
type Edited struct {
	ID, Name string
	Config   lossless.Value // null: none
	Disabled bool
}

// SetDisabled returns the text with the row's flag set; false removes it. A row
// without an id is found by the one that it gets from its name. The error is Faults
// where the text is no document or would be none, and wraps ErrNoRow or ErrByHand
// where they are the reason. The text itself is not changed.
func SetDisabled(text []byte, id string, disabled bool) ([]byte, error) {
	if disabled {
		return Set(text, id, []string{"disabled"}, lossless.Boolean(true))
	}
	e, err := open(text)
	if err != nil {
		return nil, err
	}
	row, path, err := e.row(id)
	if err != nil {
		return nil, err
	}
	flag := row.Get("disabled")
	if flag == nil {
		return text, nil
	}
	return e.done(e.drop(row, "disabled"), append(path, "disabled"), nil,
		fmt.Sprintf("remove the line with disabled from the row %s, line %d", id, e.line(flag)))
}

// Set returns the text with a value of the row set: a field, or a member of its
// config; null is written as null. Missing objects on the way are made, and of an
// object that is there only the members that differ are changed. path is not empty.
// Errors are those of SetDisabled.
func Set(text []byte, id string, path []string, value lossless.Value) ([]byte, error) {
	if len(path) == 0 || fieldOf(path[0]) < 0 {
		return nil, fmt.Errorf("set a field of the row %s: a row has %s", id, strings.Join(fieldNames, ", "))
	}
	for range maxSteps {
		e, err := open(text)
		if err != nil {
			return nil, err
		}
		row, at, err := e.row(id)
		if err != nil {
			return nil, err
		}
		step, more := nextStep(row, path, value)
		if !more {
			return text, nil
		}
		if text, err = e.step(row, id, at, step); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: more than %d values of the row %s are others", ErrByHand, maxSteps, id)
}

// maxSteps is how many values one Set changes.
const maxSteps = 1000

// step is one value that is written or, where value is nil, removed.
type step struct {
	path  []string
	value *lossless.Value
}

// nextStep finds the first value at or below a path that is not as it is to be.
func nextStep(row *yaml.Node, path []string, value lossless.Value) (step, bool) {
	n, all := below(row, path)
	if !all {
		return step{path, &value}, true
	}
	if n.Kind != yaml.Map || value.Kind() != lossless.Object || len(n.Keys) == 0 {
		return step{path, &value}, n.Style == yaml.Missing && !value.IsNull() || !lossless.Equal(literal(n), value)
	}
	down := func(key string) []string { return append(path[:len(path):len(path)], key) }
	for key, member := range value.Members() {
		if s, more := nextStep(row, down(key), member); more {
			return s, true
		}
	}
	for _, key := range n.Keys {
		if _, stays := value.Get(key.Text); !stays {
			return step{down(key.Text), nil}, true
		}
	}
	return step{}, false
}

// step makes one step of Set.
func (e *editor) step(row *yaml.Node, id string, at []string, s step) ([]byte, error) {
	parent, value := row, s.value
	hand := fmt.Sprintf("remove %s from the row %s, line %d", strings.Join(s.path, "."), id, e.line(row))
	if value != nil {
		hand = fmt.Sprintf("in the row %s, line %d, set %s to %s", id, e.line(row), strings.Join(s.path, "."), plain.Preview(value.String()))
	}
	for i, name := range s.path[:len(s.path)-1] {
		next, there := below(parent, []string{name})
		if there && (next.Kind == yaml.Map || next.Kind == yaml.List) {
			parent = next
			continue
		}
		if there && next.Kind != yaml.Null {
			return nil, fmt.Errorf("set %s of the row %s: %s, line %d, is %s and has no members", strings.Join(s.path, "."), id, name, e.line(next), next.Kind)
		}
		// From here on everything is new.
		inner := *value
		for j := len(s.path) - 1; j > i; j-- {
			inner = lossless.Obj(lossless.M(s.path[j], inner))
		}
		return e.done(e.put(parent, name, inner), append(at, s.path[:i+1]...), &inner, hand)
	}
	last := s.path[len(s.path)-1]
	if value == nil {
		return e.done(e.drop(parent, last), append(at, s.path...), nil, hand)
	}
	return e.done(e.put(parent, last, *value), append(at, s.path...), value, hand)
}

// Insert returns the text with a row after its last. An empty text becomes a
// document. A row without a name is one that overrides the row of another layer. A
// row with the id must not be there yet. Errors are those of SetDisabled.
func Insert(text []byte, row Edited) ([]byte, error) {
	var members []lossless.Member
	add := func(key string, v lossless.Value, there bool) {
		if there {
			members = append(members, lossless.M(key, v))
		}
	}
	add("id", lossless.Str(row.ID), row.ID != "")
	add("name", lossless.Str(row.Name), row.Name != "")
	add("disabled", lossless.Boolean(true), row.Disabled)
	add("config", row.Config, !row.Config.IsNull())
	value := lossless.Obj(members...)
	if len(strings.TrimSpace(string(text))) == 0 {
		return check([]byte(blockRow(value, 0)+"\n"), lossless.Arr(value), "write the row yourself")
	}
	e, err := openAny(text)
	if err != nil {
		return nil, err
	}
	if row.ID != "" {
		if n, _, err := e.row(row.ID); err == nil {
			return nil, fmt.Errorf("insert row %s: it is there already, on line %d", row.ID, e.line(n))
		}
	}
	var items []lossless.Value
	for _, item := range e.model.Items() {
		items = append(items, item)
	}
	out, ok := e.append(value)
	if !ok {
		return nil, fmt.Errorf("%w: write this at the end:\n%s", ErrByHand, blockRow(value, 0))
	}
	return check(out, lossless.Arr(append(items, value)...), "write this at the end:\n"+blockRow(value, 0))
}

// Remove returns the text without the row, the comments right above it and what is
// below it. Comments at the beginning of the text stay. Errors are those of
// SetDisabled.
func Remove(text []byte, id string) ([]byte, error) {
	e, err := open(text)
	if err != nil {
		return nil, err
	}
	row, path, err := e.row(id)
	if err != nil {
		return nil, err
	}
	list := e.file.Root
	if len(path) > 1 {
		list, _ = below(e.file.Root, path[:len(path)-1])
	}
	place, _ := strconv.Atoi(path[len(path)-1])
	return e.done(e.dropItem(list, place), path, nil, fmt.Sprintf("remove the row %s, line %d", id, e.line(row)))
}

// editor is a text that is being edited.
type editor struct {
	text  string
	file  *yaml.File
	doc   *Document // nil: it has no rows, and not even []
	model lossless.Value
}

func open(text []byte) (*editor, error) {
	d, faults := Parse(Layer{Name: "cordis.yml", Kind: Config, Text: text})
	if faults != nil {
		return nil, faults
	}
	file := d.file
	return &editor{text: file.Text, file: file, doc: d, model: literal(file.Root)}, nil
}

// openAny is open, but takes a text that has nothing but comments.
func openAny(text []byte) (*editor, error) {
	if file, fault := yaml.Parse(text); len(text) <= limits.DocumentBytes && fault == nil && file.Root == nil {
		return &editor{text: file.Text, file: file, model: lossless.Arr()}, nil
	}
	return open(text)
}

func (e *editor) line(n *yaml.Node) int {
	line, _ := e.file.Position(n.Start)
	return line
}

// row finds a row by its id, and the way to it from the list of all rows.
func (e *editor) row(id string) (*yaml.Node, []string, error) {
	var ids []string
	if e.doc != nil {
		taken, next := map[string]bool{}, map[string]int{}
		used := func(id string) bool { return taken[id] || e.doc.ids[id] != nil }
		var found *yaml.Node
		var at []string
		var walk func(rows []*entry, path []string)
		walk = func(rows []*entry, path []string) {
			for i, r := range rows {
				here := append(path[:len(path):len(path)], strconv.Itoa(i))
				name := r.id
				if name == "" {
					if name = r.name; name == "" {
						name = groupName
					}
					name = freeID(nameID(name), next, used)
				}
				taken[name] = true
				ids = append(ids, name)
				if name == id {
					found, at = r.node, here
				}
				walk(r.rows, append(here[:len(here):len(here)], "config"))
				walk(r.insert, append(here[:len(here):len(here)], "insert"))
			}
		}
		if walk(e.doc.rows, nil); found != nil {
			return found, at, nil
		}
	}
	return nil, nil, fmt.Errorf("%w: %s%s", ErrNoRow, plain.Line(id, limits.Name), meant(id, ids, ""))
}

// done checks an edit: the value at the path is the one given, or is gone, and
// nothing else is different.
func (e *editor) done(out []byte, path []string, value *lossless.Value, hand string) ([]byte, error) {
	return check(out, alter(e.model, path, value), hand)
}

// check compares what an edit made with what it was to make. out is nil where the
// edit could not be made.
func check(out []byte, want lossless.Value, hand string) ([]byte, error) {
	if out == nil {
		return nil, fmt.Errorf("%w: %s", ErrByHand, hand)
	}
	file, fault := yaml.Parse(out)
	if fault != nil || file.Root == nil || !lossless.Equal(literal(file.Root), want) {
		return nil, fmt.Errorf("%w: %s", ErrByHand, hand)
	}
	if _, faults := Parse(Layer{Name: "the edited document", Kind: Config, Text: out}); faults != nil {
		return nil, faults
	}
	return out, nil
}

// alter returns a value with another at the path; nil removes it.
func alter(v lossless.Value, path []string, value *lossless.Value) lossless.Value {
	if len(path) == 0 {
		return *value
	}
	if v.Kind() == lossless.Array {
		at, err := strconv.Atoi(path[0])
		var items []lossless.Value
		for i, item := range v.Items() {
			switch {
			case err != nil || i != at:
				items = append(items, item)
			case len(path) > 1 || value != nil:
				items = append(items, alter(item, path[1:], value))
			}
		}
		return lossless.Arr(items...)
	}
	var members []lossless.Member
	there := false
	for key, item := range v.Members() {
		switch {
		case key != path[0]:
			members = append(members, lossless.M(key, item))
		case len(path) > 1 || value != nil:
			members = append(members, lossless.M(key, alter(item, path[1:], value)))
		}
		there = there || key == path[0]
	}
	if !there && value != nil {
		members = append(members, lossless.M(path[0], alter(lossless.Value{}, path[1:], value)))
	}
	return lossless.Obj(members...)
}
