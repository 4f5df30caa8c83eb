package repotest

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	mdLink  = regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`)
	mdFence = regexp.MustCompile("(?ms)^```.*?^```")
	mdCode  = regexp.MustCompile("`[^`\n]*`")
)

// TestLinks: a relative link in a Markdown file leads to a file of the repository.
func TestLinks(t *testing.T) {
	for _, name := range textFiles(t) {
		if path.Ext(name) != ".md" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		prose := mdCode.ReplaceAll(mdFence.ReplaceAll(text, nil), nil)
		for _, m := range mdLink.FindAllSubmatch(prose, -1) {
			u, err := url.Parse(string(m[1]))
			if err != nil {
				t.Errorf("%s: link %q: %v", name, m[1], err)
				continue
			}
			if u.Scheme != "" || u.Path == "" {
				continue
			}
			target := path.Join(path.Dir(name), u.Path)
			if strings.HasPrefix(u.Path, "/") {
				t.Errorf("%s: link %q is absolute; write it relative to the file", name, m[1])
			} else if _, err := os.Stat(filepath.Join(root(), filepath.FromSlash(target))); err != nil {
				t.Errorf("%s: link %q leads nowhere: no %s", name, m[1], target)
			}
		}
	}
}
