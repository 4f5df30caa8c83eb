package repotest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestArchitectureNamesPackages: the map of the repository has every package on it.
func TestArchitectureNamesPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(), "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range sortedKeys(byPackage(repoSources(t))) {
		if dir != "." && !strings.Contains(string(text), "`"+dir+"`") {
			t.Errorf("docs/architecture.md does not name `%s`; give it its paragraph", dir)
		}
	}
}

// readmeCommands are what the README tells a newcomer to type. The test command
// is in the table so that the README keeps it, and is not run: this is it.
var readmeCommands = []struct {
	line string
	run  bool
	has  string // in what the command prints
}{
	{"go run ./cmd/dsh demo", true, "cordis_mount"},
	{"go test ./...", false, ""},
	{`echo 'cordis_inspect {"what":"api","name":"fs.readText"}' | go run ./cmd/dsh tool`, true, "readText(target: string | Target"},
}

// fenced is any block; its first group says in which language.
var fenced = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// TestReadmeCommands runs the README's commands as they stand in it.
func TestReadmeCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, line := range shellLines(text) {
		found[line] = true
	}
	for i, c := range readmeCommands {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if !found[c.line] {
				t.Fatalf("README.md has no line %q in a shell block", c.line)
			}
			delete(found, c.line)
			if !c.run {
				return
			}
			if testing.Short() {
				t.Skip("-short: it builds and runs the program several times")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			runLine(ctx, t, c.line, t.TempDir(), c.has)
		})
	}
	for line := range found {
		t.Errorf("README.md: %q stands in a shell block, and no test runs it; add it to readmeCommands", line)
	}
}

// runLine runs a line of a shell in the root of the repository.
func runLine(ctx context.Context, t *testing.T, line, home, has string) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = root()
	cmd.Env = append(os.Environ(), "DSH_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), has) {
		t.Fatalf("%s: %v; want exit status 0 and %q in:\n%s", line, err, has, out)
	}
}

// examples say what the commands of each example print, in their order.
var examples = map[string][]string{
	"cordis-agent": {"Three items are open", "the model has new tools: open_items"},
}

// TestExamples runs the commands of each example's README, one after the other.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds and runs the program several times")
	}
	folders, err := os.ReadDir(filepath.Join(root(), "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		t.Run(f.Name(), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root(), "examples", f.Name(), "README.md"))
			if err != nil {
				t.Fatal(err)
			}
			prints := examples[f.Name()]
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			home, n := t.TempDir(), 0
			for _, line := range shellLines(text) {
				if n == len(prints) {
					t.Fatalf("say in examples what this command prints: %s", line)
				}
				runLine(ctx, t, line, home, prints[n])
				n++
			}
			if n < len(prints) {
				t.Errorf("it has %d commands, announced are %d", n, len(prints))
			}
		})
	}
}

// shellLines are the lines of the blocks that a reader types.
func shellLines(text []byte) []string {
	var lines []string
	for _, block := range fenced.FindAllSubmatch(text, -1) {
		if string(block[1]) != "sh" {
			continue
		}
		for line := range strings.Lines(string(block[2])) {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
		}
	}
	return lines
}
