package bridge

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is one field of a struct, as JSON has it.
type field struct {
	name     string
	index    []int
	t        reflect.Type
	optional bool // it may be left out
	empty    func(reflect.Value) bool
}

// object is a struct, as JSON has it.
type object struct {
	fields []field
	names  []string
}

func (o *object) find(name string) *field {
	for n := range o.fields {
		if o.fields[n].name == name {
			return &o.fields[n]
		}
	}
	return nil
}

var objects sync.Map // reflect.Type → *object

// fieldsOf gives the fields of a struct type by its JSON tags; those of embedded
// structs without a name are its own.
func fieldsOf(t reflect.Type) *object {
	if o, ok := objects.Load(t); ok {
		return o.(*object)
	}
	o := new(object)
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		embedded := f.Anonymous && name == "" && indirect(f.Type).Kind() == reflect.Struct
		if !f.IsExported() || name == "-" && options == "" || embedded || throughNamed(t, f) {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if o.find(name) != nil {
			continue // the nearest was first
		}
		one := field{name: name, index: f.Index, t: f.Type}
		list := strings.Split(options, ",")
		switch {
		case slices.Contains(list, "omitzero"):
			one.empty = isZero
		case slices.Contains(list, "omitempty"):
			one.empty = isEmpty
		}
		one.optional = one.empty != nil || f.Type.Kind() == reflect.Pointer || f.Type == signalType
		o.fields = append(o.fields, one)
		o.names = append(o.names, name)
	}
	actual, _ := objects.LoadOrStore(t, o)
	return actual.(*object)
}

// throughNamed tells whether a promoted field comes from an embedded struct that
// is a member of its own.
func throughNamed(t reflect.Type, f reflect.StructField) bool {
	for n := 1; n < len(f.Index); n++ {
		outer := t.FieldByIndex(f.Index[:n])
		if name, _, _ := strings.Cut(outer.Tag.Get("json"), ","); name != "" {
			return true
		}
	}
	return false
}

func indirect(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func isZero(v reflect.Value) bool {
	if z, ok := v.Interface().(interface{ IsZero() bool }); ok {
		return z.IsZero()
	}
	return v.IsZero()
}

// isEmpty is what omitempty leaves out.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
