package settings

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// Source is the document that says a value.
type Source struct {
	// Dir is the document's folder, absolute; "" for one that has none, such as --set:
	// its relative paths begin at the working directory of the process.
	Dir string
	// Project says that it is a project's, which may not set everything.
	Project bool
}

// origin gives every path of a value its folder, and refuses what a project may not
// set. from tells which document says a value; nil: nobody knows.
type origin struct {
	c    *checker
	from func(path ...string) Source
}

// place walks a value that fits its description.
func (o *origin) place(n *node, v lossless.Value, path []string) lossless.Value {
	if n.person && o.from != nil && o.from(path...).Project {
		o.c.fault(path, "a project may not set %s; set it in your own cordis.yml (in $DSH_HOME), or with --config or --set", path[len(path)-1])
		return v
	}
	switch {
	case n.fields != nil && v.Kind() == lossless.Object:
		members := make([]lossless.Member, 0, v.Len())
		for name, member := range v.Members() {
			if f := n.fields[name]; f != nil {
				member = o.place(f, member, append(path[:len(path):len(path)], name))
			}
			members = append(members, lossless.M(name, member))
		}
		return lossless.Obj(members...)
	case n.item != nil && v.Kind() == lossless.Array:
		items := make([]lossless.Value, 0, v.Len())
		for i, item := range v.Items() {
			items = append(items, o.place(n.item, item, append(path[:len(path):len(path)], strconv.Itoa(i))))
		}
		return lossless.Arr(items...)
	case n.format == formatPath && v.Kind() == lossless.String && isPath(v.Str()):
		return lossless.Str(o.absolute(v.Str(), path))
	}
	return v
}

// isPath says whether a text can be a path at all.
func isPath(name string) bool { return name != "" && !strings.ContainsRune(name, 0) }

// absolute is a path as it is meant by the document that says it.
func (o *origin) absolute(name string, path []string) string {
	if name == "~" || strings.HasPrefix(name, "~/") {
		home, err := os.UserHomeDir()
		if err != nil {
			o.c.fault(path, "~ is not known here: %s", plain.Error(err.Error()))
			return name
		}
		return filepath.Join(home, name[1:])
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	if o.from == nil {
		o.c.fault(path, "%s must be absolute, or begin with ~/", strconv.Quote(plain.Line(name, limits.Preview)))
		return name
	}
	dir := o.from(path...).Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			o.c.fault(path, "the working directory is not known: %s", plain.Error(err.Error()))
			return name
		}
	}
	return filepath.Join(dir, name)
}

// Check gives the config as a T, with defaults filled in, or everything that is wrong
// with it. null is the empty config. Paths have to be absolute or to begin with ~/;
// they are cleaned.
func (t *Type) Check(config lossless.Value) (value any, faults []Fault) {
	return t.CheckFrom(config, nil)
}

// CheckFrom is [Type.Check] of a config of which it is known which document says a
// value at a path: relative paths are made absolute, and what no project may set is
// refused from one.
func (t *Type) CheckFrom(config lossless.Value, from func(path ...string) Source) (value any, faults []Fault) {
	if config.IsNull() {
		config = lossless.Obj()
	}
	c := &checker{}
	whole := c.check(t.node, config, nil)
	o := origin{c, from}
	if len(c.faults) > 0 {
		o.place(t.node, config, nil) // for its faults
		return nil, c.faults
	}
	whole = o.place(t.node, whole, nil)
	v, err := t.read(whole)
	if err != nil {
		c.fault(nil, "it cannot be read: %v", err)
	}
	if more, ok := v.(interface {
		CheckSettings(fault func(path []string, message string))
	}); ok && err == nil {
		more.CheckSettings(func(path []string, message string) { c.fault(path, "%s", message) })
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return v, nil
}
