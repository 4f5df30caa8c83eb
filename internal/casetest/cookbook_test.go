package casetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recipeParts are headings, and blocks: plugins as js or ts, calls and their answers as text.
var recipeParts = regexp.MustCompile("(?ms)^## (.*?)$|^```(js|ts|text)\n(.*?)\n```$")

// madeCall is one call of the cookbook, and what its answer must have.
type madeCall struct {
	recipe, line string
	wants        []string
	fails        bool
}

// TestCookbook mounts every plugin of docs/cookbook.md in its order and makes
// the calls below it. The page's https://example.org is a server here.
func TestCookbook(t *testing.T) {
	page, err := os.ReadFile("../../docs/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	served := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/data" {
			http.NotFound(w, r)
			return
		}
		served++
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"served":%d}`, served)
	}))
	defer server.Close()
	script, calls := cookbook(t, strings.ReplaceAll(string(page), "https://example.org", server.URL))
	if len(calls) < 30 {
		t.Fatalf("only %d calls are made", len(calls))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"notes/opening.txt": "The quick brown fox jumps over the lazy dog.\nIt was a dark and stormy night; the rain fell in torrents.\nCall me Ishmael.\n",
		"inbox/.keep":       "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), Program(t), "tool", "--json", "--allow-private-web")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && (!asExit(err, &exit) || exit.ExitCode() != 1) { // 1: calls failed, as some are to
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for _, c := range calls {
		var a struct {
			Text    string `json:"text"`
			IsError bool   `json:"isError"`
		}
		if err := answers.Decode(&a); err != nil {
			t.Fatalf("%s: %s has no answer: %v\n%s", c.recipe, c.line, err, stderr.String())
		}
		if a.IsError != c.fails {
			t.Errorf("%s: %s: failed is %v, want %v:\n%s", c.recipe, c.line, a.IsError, c.fails, a.Text)
		}
		for _, want := range c.wants {
			if !strings.Contains(a.Text, want) {
				t.Errorf("%s: %s: %q is not in the answer:\n%s", c.recipe, c.line, want, a.Text)
			}
		}
	}
}

func asExit(err error, exit **exec.ExitError) bool {
	return errors.As(err, exit)
}

// cookbook reads the page as a script for dsh tool, and what is to be answered.
func cookbook(t *testing.T, page string) (script string, calls []madeCall) {
	t.Helper()
	recipe := ""
	for _, m := range recipeParts.FindAllStringSubmatch(page, -1) {
		switch m[2] {
		case "":
			recipe = m[1]
		case "text":
			for line := range strings.SplitSeq(m[3], "\n") {
				mark, rest, _ := strings.Cut(line, " ")
				switch mark {
				case ">":
					script += rest + "\n"
					calls = append(calls, madeCall{recipe: recipe, line: rest})
				case "|", "!":
					last := &calls[len(calls)-1]
					last.wants = append(last.wants, rest)
					last.fails = last.fails || mark == "!"
				default:
					t.Fatalf("%s: a line is neither a call nor an answer: %q", recipe, line)
				}
			}
		default:
			script += "cordis_mount <<PLUGIN\n" + m[3] + "\nPLUGIN\n"
			calls = append(calls, madeCall{recipe: recipe, line: "cordis_mount", wants: []string{"(plugin "}})
		}
	}
	return script, calls
}
