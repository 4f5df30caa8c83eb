package tool

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestExecViewDescribesExec: what documents a call for plugins has the members
// that its JSON has.
func TestExecViewDescribesExec(t *testing.T) {
	text, err := json.Marshal(&Exec{Token: 2, CallID: "a", RootCallID: "b", Name: "c", Arguments: []byte("{}"), Parent: 1})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for i := range reflect.TypeFor[ExecView]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[ExecView]().Field(i).Tag.Get("json"), ",")
		documented = append(documented, name)
	}
	slices.Sort(documented)
	if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, documented) {
		t.Errorf("Exec writes %v, ExecView documents %v", got, documented)
	}
}
