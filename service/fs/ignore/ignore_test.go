package ignore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
)

var cases = []struct {
	name, file string
	path       string
	dir        bool
	want       Decision
}{
	{"name_anywhere", "a.log", "x/y/a.log", false, Ignored},
	{"name_is_whole", "a.log", "x/ba.log", false, Undecided},
	{"ending", "*.log", "x/b.log", false, Ignored},
	{"star_stays_in_name", "a/*.log", "a/b/c.log", false, Undecided},
	{"slash_anchors", "a/b", "x/a/b", false, Undecided},
	{"slash_anchors_here", "a/b", "a/b", true, Ignored},
	{"leading_slash", "/a", "a", false, Ignored},
	{"leading_slash_only_here", "/a", "x/a", false, Undecided},
	{"folder_only", "build/", "build", true, Ignored},
	{"folder_only_not_file", "build/", "build", false, Undecided},
	{"folder_anywhere", "build/", "x/build", true, Ignored},
	{"last_wins", "*.log\n!a.log", "a.log", false, Kept},
	{"last_wins_again", "!a.log\n*.log", "a.log", false, Ignored},
	{"comment", "# a\na", "a", false, Ignored},
	{"escaped_hash", `\#a`, "#a", false, Ignored},
	{"escaped_bang", `\!a`, "!a", false, Ignored},
	{"leading_stars", "**/a/b", "x/y/a/b", false, Ignored},
	{"leading_stars_none", "**/a", "a", false, Ignored},
	{"trailing_stars", "a/**", "a/x/y", false, Ignored},
	{"trailing_stars_not_itself", "a/**", "a", true, Undecided},
	{"middle_stars", "a/**/b", "a/b", false, Ignored},
	{"middle_stars_deep", "a/**/b", "a/x/y/b", false, Ignored},
	{"stars_in_name", "a**b", "axxb", false, Ignored},
	{"stars_in_name_no_slash", "x/a**b", "x/a/b", false, Undecided},
	{"question", "a?c", "abc", false, Ignored},
	{"class", "[a-c].txt", "b.txt", false, Ignored},
	{"class_not", "[!a-c].txt", "b.txt", false, Undecided},
	{"braces_are_text", "{a,b}", "{a,b}", false, Ignored},
	{"braces_do_not_choose", "{a,b}", "a", false, Undecided},
	{"spaces_at_the_end", "a  ", "a", false, Ignored},
	{"escaped_space", `a\ `, "a ", false, Ignored},
	{"windows_line", "a\r\nb\r\n", "a", false, Ignored},
	{"unclosed_class", "a[", "a[", false, Undecided},
	{"only_slash", "/", "a", true, Undecided},
	{"empty", "", "a", false, Undecided},
}

func TestMatch(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := Parse(c.file).Match(c.path, c.dir); got != c.want {
				t.Errorf("%q on %q: got %d, want %d", c.file, c.path, got, c.want)
			}
		})
	}
}

// TestLikeGit: git itself decides the same.
func TestLikeGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("compares with the real git, which is not installed")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(args ...string) ([]byte, error) {
				cmd := exec.Command(git, args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
				return cmd.Output()
			}
			if _, err := run("init", "-q"); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, ".gitignore"), c.file)
			if c.dir {
				if err := os.MkdirAll(filepath.Join(dir, c.path), 0o755); err != nil {
					t.Fatal(err)
				}
			} else {
				write(t, filepath.Join(dir, c.path), "")
			}
			out, _ := run("check-ignore", "-v", "--no-index", "--", c.path) // status 1: nothing fits
			want := Undecided
			if fields := bytes.SplitN(out, []byte{':'}, 3); len(fields) > 2 {
				want = Ignored
				if fields[2][0] == '!' {
					want = Kept
				}
			}
			if want != c.want {
				t.Errorf("%q on %q: git says %d (%q), the table %d", c.file, c.path, want, out, c.want)
			}
		})
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBounds(t *testing.T) {
	var b strings.Builder
	for i := range limits.IgnoreRules + 10 {
		fmt.Fprintf(&b, "f%d\n", i)
	}
	r := Parse(b.String())
	if got := r.Match(fmt.Sprintf("f%d", limits.IgnoreRules-1), false); got != Ignored {
		t.Errorf("the last pattern within the limit: got %d", got)
	}
	if got := r.Match(fmt.Sprintf("f%d", limits.IgnoreRules), false); got != Undecided {
		t.Errorf("the first pattern beyond the limit: got %d", got)
	}
	long := strings.Repeat("#\n", limits.IgnoreFile/2) + "a"
	if !Parse(long).Empty() {
		t.Error("what is beyond the limit of bytes was read")
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range cases {
		f.Add(c.file, c.path, c.dir)
	}
	f.Fuzz(func(t *testing.T, file, path string, dir bool) {
		r := Parse(file)
		got := r.Match(path, dir)
		if got != Undecided && r.Empty() {
			t.Error("no pattern decided")
		}
		if again := Parse(file+"\n").Match(path, dir); again != got && !strings.HasSuffix(file, "\r") && len(file) < limits.IgnoreFile {
			t.Errorf("a line break at the end changed %d to %d", got, again)
		}
	})
}
