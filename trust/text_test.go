package trust

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	s := State{
		Root:    "/p q",
		New:     []Change{{Path: ".dsh/a\n.js", Size: 1, Diff: "--- /dev/null\n+++ .dsh/a .js\n@@ -0,0 +1,1 @@\n+a\n"}},
		Changed: []Change{{Path: ".dsh/b.js", Size: 2, Lost: true, Diff: "diff\n"}},
		Gone:    []string{".dsh/c.js"},
	}
	want := "new: .dsh/a .js, 1 byte\n--- /dev/null\n+++ .dsh/a .js\n@@ -0,0 +1,1 @@\n+a\n\n" +
		"changed: .dsh/b.js, 2 bytes; what was trusted before is not kept any more, so all of it is shown\ndiff\n\ngone: .dsh/c.js\n"
	if diff := cmp.Diff(want, s.Text()); diff != "" {
		t.Error(diff)
	}
	notice := "2 files of the project /p q are not trusted and not loaded: .dsh/a .js (new), .dsh/b.js (changed); to look at them and trust them: dsh trust '/p q'"
	if diff := cmp.Diff(notice, s.Notice()); diff != "" {
		t.Error(diff)
	}
	notice = "2 files of the project /p q are not trusted and not loaded as now on disk: .dsh/a .js (new), .dsh/b.js (changed, what was loaded before goes on); to look at them and trust them: dsh trust '/p q'"
	if diff := cmp.Diff(notice, s.NoticeWhere(func(path string) bool { return path == ".dsh/b.js" })); diff != "" {
		t.Error(diff)
	}
	if s := (State{Root: "/p", Trusted: []string{"x"}}); s.Text()+s.Notice() != "" {
		t.Errorf("%q, %q", s.Text(), s.Notice())
	}
	for i := range 12 {
		s.New = append(s.New, Change{Path: fmt.Sprint(i)})
	}
	if got := s.Notice(); !strings.Contains(got, "14 files") || !strings.Contains(got, "8 (new), and 4 more;") {
		t.Error(got)
	}
}
