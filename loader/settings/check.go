package settings

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// Fault is one thing that is wrong with a config.
type Fault struct {
	// Path is the way from the config to the value; an item of a list is its index.
	Path    []string
	Message string
}

// checker collects what is wrong.
type checker struct{ faults []Fault }

func (c *checker) fault(path []string, format string, args ...any) {
	if len(c.faults) < limits.DocumentFaults {
		c.faults = append(c.faults, Fault{slices.Clone(path), fmt.Sprintf(format, args...)})
	}
}

// check gives the value with defaults filled in.
func (c *checker) check(n *node, v lossless.Value, path []string) lossless.Value {
	if want := n.wants(v); want != "" {
		c.fault(path, "%s must be %s, and is %s", called(path), want, what(v))
		return v
	}
	switch n.kind {
	case reflect.Struct:
		return c.object(n, v, path)
	case reflect.Slice, reflect.Map:
		return c.items(n, v, path)
	case reflect.String:
		c.text(n, v.Str(), path)
	case reflect.Int:
		c.number(n, v, path)
		i, _ := v.Int64()
		return lossless.Int(i) // 1e3 and 1000.0 are whole, too
	case reflect.Float64:
		c.number(n, v, path)
	}
	return v
}

// wants says what a value of another type should be; "" for one that fits.
func (n *node) wants(v lossless.Value) string {
	var ok bool
	switch n.kind {
	case reflect.Bool:
		ok = v.Kind() == lossless.Bool
	case reflect.String:
		ok = v.Kind() == lossless.String
	case reflect.Float64:
		ok = v.Kind() == lossless.Number
	case reflect.Int:
		if ok = v.Kind() == lossless.Number; ok {
			_, ok = v.Int64()
		}
	case reflect.Slice:
		ok = v.Kind() == lossless.Array
	default:
		ok = v.Kind() == lossless.Object
	}
	if ok {
		return ""
	}
	return article(n.words())
}

func (c *checker) object(n *node, v lossless.Value, path []string) lossless.Value {
	members := make([]lossless.Member, 0, len(n.names))
	for name := range v.Members() {
		if n.fields[name] == nil {
			c.unknown(n, name, path)
		}
	}
	for _, name := range n.names {
		f := n.fields[name]
		member, ok := v.Get(name)
		switch {
		case ok:
			members = append(members, lossless.M(name, c.check(f, member, append(path, name))))
		case f.fallback != nil:
			members = append(members, lossless.M(name, *f.fallback))
		case f.kind == reflect.Struct: // its options may have defaults
			members = append(members, lossless.M(name, c.check(f, lossless.Obj(), append(path, name))))
		}
	}
	return lossless.Obj(members...)
}

// unknown tells of a member that there is not, and of the one that may be meant.
func (c *checker) unknown(n *node, name string, path []string) {
	text := fmt.Sprintf("there is no option %q", plain.Name(name))
	switch near := plain.Nearest(name, n.names); {
	case near != "":
		text += fmt.Sprintf("; did you mean %q?", near)
	case len(n.names) == 0:
		text += "; there are none"
	default:
		text += "; there are: " + strings.Join(n.names, ", ")
	}
	c.fault(append(path, name), "%s", text)
}

func (c *checker) items(n *node, v lossless.Value, path []string) lossless.Value {
	n.within(c, float64(v.Len()), limits.SettingsItems, "items", path)
	if n.kind == reflect.Map {
		members := make([]lossless.Member, 0, v.Len())
		for name, member := range v.Members() {
			members = append(members, lossless.M(name, c.check(n.item, member, append(path, name))))
		}
		return lossless.Obj(members...)
	}
	items := make([]lossless.Value, 0, v.Len())
	for i, item := range v.Items() {
		items = append(items, c.check(n.item, item, append(path, strconv.Itoa(i))))
	}
	return lossless.Arr(items...)
}

func (c *checker) text(n *node, s string, path []string) {
	if len(n.enum) > 0 && !slices.Contains(n.enum, s) {
		c.fault(path, "%s must be one of %s, and is %q", called(path), strings.Join(n.enum, ", "), plain.Line(s, limits.Preview))
		return
	}
	if !n.within(c, float64(utf8.RuneCountInString(s)), limits.SettingsText, "characters", path) {
		return
	}
	if n.text != nil {
		v := reflect.ValueOf(s).Convert(n.text).Interface().(textual)
		if err := v.CheckText(); err != nil {
			c.fault(path, "%s: %v", called(path), err)
		}
	}
	if n.format == formatPath && !isPath(s) {
		c.fault(path, "%s must be a path", called(path))
	}
}

func (c *checker) number(n *node, v lossless.Value, path []string) {
	f := v.Float()
	if n.min != nil && f < *n.min || n.max != nil && f > *n.max {
		c.fault(path, "%s must be %s, and is %s", called(path), n.bounds(), plain.Line(v.Literal(), limits.Preview))
	}
}

// within checks a count, and says whether it is right.
func (n *node) within(c *checker, count, most float64, of string, path []string) bool {
	least := 0.0
	if n.min != nil {
		least = *n.min
	}
	if n.max != nil {
		most = *n.max
	}
	if count < least || count > most {
		c.fault(path, "%s must have %s to %s %s, and has %s", called(path), digits(least), digits(most), of, digits(count))
		return false
	}
	return true
}

// words says of which type a value is.
func (n *node) words() string {
	switch n.kind {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		if n.item.kind == reflect.Struct {
			return "list of objects"
		}
		return "list of " + plural(n.item.words())
	case reflect.Map:
		return "map of " + plural(n.item.words())
	case reflect.Struct:
		return "object"
	}
	if n.format != "" {
		return n.format
	}
	return "text"
}

func plural(words string) string {
	if words == "true or false" {
		return words
	}
	return words + "s"
}

// bounds says within which a value is; "" for none.
func (n *node) bounds() string {
	of := ""
	switch n.kind {
	case reflect.String:
		of = " characters"
	case reflect.Slice, reflect.Map:
		of = " items"
	}
	switch {
	case n.min != nil && n.max != nil:
		return "from " + digits(*n.min) + " to " + digits(*n.max) + of
	case n.min != nil:
		return "at least " + digits(*n.min) + of
	case n.max != nil:
		return "at most " + digits(*n.max) + of
	}
	return ""
}

func digits(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// article is the word with its article, where it takes one.
func article(words string) string {
	switch {
	case words == "true or false":
		return words
	case strings.HasPrefix(words, "o"):
		return "an " + words
	}
	return "a " + words
}

// called is how a message calls the value at path.
func called(path []string) string {
	if len(path) == 0 {
		return "the config"
	}
	name := plain.Name(path[len(path)-1])
	if _, err := strconv.Atoi(name); err == nil {
		return "item " + name
	}
	return name
}

// what says what a value is.
func what(v lossless.Value) string {
	switch v.Kind() {
	case lossless.Array:
		return "a list"
	case lossless.Object:
		return "an object"
	case lossless.Null:
		return "null"
	case lossless.String:
		return fmt.Sprintf("the text %q", plain.Line(v.Str(), limits.Preview))
	}
	return plain.Line(string(v.Encode()), limits.Preview)
}
