package bridge

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/catalog"
)

// oneOf refuses a string that is none of those that its type has.
func oneOf(path *place, t reflect.Type, v lossless.Value) error {
	if t.PkgPath() == "" {
		return nil
	}
	all := literals(t.Name())
	if len(all) == 0 || slices.Contains(all, v.Str()) {
		return nil
	}
	shown := make([]string, len(all))
	for n, one := range all {
		shown[n] = strconv.Quote(one)
	}
	return wrongf("%s must be %s, got %s%s", path, strings.Join(shown, " | "), got(v), suggest(v.Str(), all))
}

// literals are the strings of a type that is a union of them; nil: it is not.
func literals(name string) []string {
	described, ok := catalog.LookupType(name)
	if !ok {
		return nil
	}
	_, union, ok := strings.Cut(described.Short, "=")
	if !ok {
		return nil
	}
	var all []string
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSpace(union), ";"), "|") {
		part = strings.TrimSpace(part)
		if len(part) < 2 || part[0] != '"' && part[0] != '\'' || part[len(part)-1] != part[0] {
			return nil
		}
		all = append(all, part[1:len(part)-1])
	}
	return all
}
