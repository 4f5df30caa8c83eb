package repotest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// forbidden are texts that do not belong into a repository. They are written in
// two halves so that this file does not hold them.
var forbidden = []struct{ word, why string }{
	{"TO" + "DO", "finish it, or write it down where work is tracked"},
	{"FIX" + "ME", "mend it, or write it down where work is tracked"},
	{"X" + "XX:", "mend it, or write it down where work is tracked"},
	{"/wo" + "rk/", "a path of one machine"},
	{"/tmp/" + "dsh/", "a path of one machine"},
	{"the iss" + "ue says", "the text that asked for it is not at hand for a reader; say the reason"},
	{"as an A" + "I", "the text speaks of the project, not of who wrote it"},
	{"another engi" + "neer", "the text speaks of the project, not of who wrote it"},
	{"my ta" + "sk", "the text speaks of the project, not of who wrote it"},
	{"the bri" + "ef", "the text speaks of the project, not of who wrote it"},
	{"house ru" + "les", "name the document in the repository"},
}

func TestForbiddenWords(t *testing.T) {
	for _, name := range textFiles(t) {
		text, err := os.ReadFile(filepath.Join(root(), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, f := range forbidden {
				if strings.Contains(line, f.word) {
					t.Errorf("%s:%d: %q: %s", name, i+1, f.word, f.why)
				}
			}
		}
	}
}
