package tool

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestToolCallDescribesExec: what documents a call for plugins has the members
// that its JSON has.
func TestToolCallDescribesExec(t *testing.T) {
	text, err := json.Marshal(&Exec{Token: 2, CallID: "a", RootCallID: "b", Name: "c", Arguments: []byte("{}"), Parent: 1})
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for i := range reflect.TypeFor[ToolCall]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[ToolCall]().Field(i).Tag.Get("json"), ",")
		documented = append(documented, name)
	}
	slices.Sort(documented)
	if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, documented) {
		t.Errorf("Exec writes %v, ToolCall documents %v", got, documented)
	}
}
