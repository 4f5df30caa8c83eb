package casetest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// exampleTask is what a live model is asked. Its files say whether it did it.
const exampleTask = `Work in your own runtime, with cordis_inspect and cordis_mount; do not use bash.
1. Mount a listener for 'tools/result' that appends the name of each tool, one a line, to
   the file heard.txt here, through the service fs.
2. Mount a tool open_items over the service fs that finds the open items ("- [ ] …") in
   notes/*.md. Call it on your next step and write what it gives to open.txt, one item a
   line, without the "- [ ]".
3. Compose two mounts: one provides a service with a method that counts the lines of a
   text; the other injects that service and registers a tool count_items, which reads
   open.txt and returns the number of its lines by calling the service. Call it and write
   the number alone to count.txt.
Leave everything mounted, and say done.`

// TestExampleLive: a live model mounts a listener, builds and uses its own tool, and
// composes two mounts. What it says is not looked at: its files and the log are.
func TestExampleLive(t *testing.T) {
	if os.Getenv("DEEPSEEK_API_KEY") == "" && os.Getenv("ANTHROPIC_API_KEY") == "" && os.Getenv("OPENAI_API_KEY") == "" {
		t.Skip("it needs a model: set DEEPSEEK_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY to run it")
	}
	example, err := filepath.Abs("../../examples/cordis-agent")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "notes"), os.DirFS(filepath.Join(example, "notes"))); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program(t), "run", "--config", filepath.Join(example, "cordis.yml"), "--cwd", dir,
		"--permission", "full", "--deny", "bash", "--max-steps", "40", "--json", exampleTask)
	cmd.Env = append(os.Environ(), "DSH_HOME="+t.TempDir())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, want := range map[string][]string{
		"open.txt":  {"repair the fence", "ask Noor about the water barrel", "find the tent"},
		"count.txt": {"3"},
		"heard.txt": {"open_items", "count_items"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s does not have %q:\n%s", file, w, text)
			}
		}
	}
	worked := worked(t, out)
	if worked["cordis_mount"] < 4 || worked["open_items"] < 1 || worked["count_items"] < 1 {
		t.Errorf("calls that worked: %v", worked)
	}
}

// worked counts the calls of a log that did not fail, by their tools.
func worked(t *testing.T, log []byte) map[string]int {
	t.Helper()
	names, counts := map[string]string{}, map[string]int{}
	for line := range strings.Lines(string(log)) {
		var e struct {
			Type string
			Data struct {
				CallID, Name string
				Message      struct {
					Content []struct {
						ToolCallID string
						IsError    bool
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "tool/call":
			names[e.Data.CallID] = e.Data.Name
		case "tool/result":
			for _, c := range e.Data.Message.Content {
				if !c.IsError {
					counts[names[c.ToolCallID]]++
				}
			}
		}
	}
	return counts
}

// TestWorked: the count of what worked is right, or the test above proves nothing.
func TestWorked(t *testing.T) {
	got := worked(t, []byte(`{"type":"tool/call","data":{"callId":"a","name":"x"}}
{"type":"tool/result","data":{"message":{"content":[{"toolCallId":"a"}]}}}
{"type":"tool/call","data":{"callId":"b","name":"x"}}
{"type":"tool/result","data":{"message":{"content":[{"toolCallId":"b","isError":true}]}}}
`))
	if got["x"] != 1 || len(got) != 1 {
		t.Errorf("%v", got)
	}
}
