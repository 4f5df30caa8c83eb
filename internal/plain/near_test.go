package plain

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for name, c := range map[string]struct {
		among string
		want  string
	}{
		"timeout":                  {"command timeout_ms cwd", "timeout_ms"},
		"ofset":                    {"file_path offset limit", "offset"},
		"replaceAll":               {"file_path old_string replace_all", "replace_all"},
		"path":                     {"file_path offset", "file_path"},
		"open_checkbox":            {"open_checkboxes read", "open_checkboxes"},
		"z":                        {"a b", ""},
		"xyz":                      {"command cwd", ""},
		"run":                      {"bash.run bash.stop", "bash.run"},
		strings.Repeat("long", 40): {strings.Repeat("long", 40), ""},
	} {
		t.Run(name[:min(len(name), 20)], func(t *testing.T) {
			if got := Nearest(name, strings.Fields(c.among)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := Nearest("a", nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
