package mount

import (
	"slices"
	"testing"
)

// TestParamNames: names are told only where the text says them plainly.
func TestParamNames(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		arity      int
		want       []string
	}{
		{"method", "hello(who) { return 1 }", 1, []string{"who"}},
		{"async_method", "async open(path, options = null) {", 1, []string{"path", "options?"}},
		{"function", "function (a, $b) {", 2, []string{"a", "$b"}},
		{"generator", "async function* walk(a, ...rest) {", 1, []string{"a", "...rest"}},
		{"arrow", "(a, b) => a(b)", 2, []string{"a", "b"}},
		{"bare_arrow", "async who => f(x)", 1, []string{"who"}},
		{"no_parameters", "count() {", 0, nil},
		{"destructured", "f({ a, b }) {", 1, nil},
		{"call_in_default", "f(a, b = g(1)) {", 1, nil},
		{"comment", "f(a /* , b */) {", 1, nil},
		{"computed", "['f(x)'](a) {", 1, nil},
		{"other_arity", "f(a) {", 2, nil},
		{"native", "function f() {\n    [native code]\n}", 3, nil},
		{"class", "class A { constructor(a) {} }", 1, nil},
		{"cut", "f(aaaa, bbb…", 2, nil},
		{"empty", "", 1, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := paramNames(tt.text, tt.arity); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
