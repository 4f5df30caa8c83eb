package repotest

import (
	"strings"
	"testing"
)

// TestPackageComments: a package tells what it promises, in one place. Two
// comments would be joined by the documentation in file order, which nobody
// wrote or reads as one text.
func TestPackageComments(t *testing.T) {
	packages := byPackage(repoSources(t))
	for _, dir := range sortedKeys(packages) {
		var documented []string
		for _, s := range packages[dir] {
			if s.Syntax.Doc == nil {
				continue
			}
			documented = append(documented, s.Path)
			name, text := s.Syntax.Name.Name, s.Syntax.Doc.Text()
			if name != "main" && !strings.HasPrefix(text, "Package "+name+" ") {
				t.Errorf("%s: the package comment starts with %q; start it with %q", s.Path, firstWords(text), "Package "+name+" …")
			}
		}
		switch {
		case len(documented) == 0:
			t.Errorf("%s: no package comment; say in one file what the package promises (ordering, concurrency, ownership, errors)", dir)
		case len(documented) > 1:
			t.Errorf("%s: package comments in %s; keep one", dir, strings.Join(documented, " and "))
		}
	}
}

func firstWords(s string) string {
	words := strings.Fields(s)
	return strings.Join(words[:min(3, len(words))], " ")
}
