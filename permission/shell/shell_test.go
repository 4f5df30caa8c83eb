package shell

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func texts(words []Word) string {
	var out []string
	for _, w := range words {
		t := w.Text
		if !w.Literal {
			t = "?" + t
		}
		out = append(out, t)
	}
	return strings.Join(out, "|")
}

// TestCommands: what a line runs, through everything that hides it. A ? marks what
// is not literal.
func TestCommands(t *testing.T) {
	tests := []struct {
		line    string
		want    []string
		writes  string
		unknown string // part of the first reason
	}{
		{line: "", want: nil},
		{line: "git status", want: []string{"git|status"}},
		{line: "a; b && c || d | e |& f & g", want: []string{"a", "b", "c", "d", "e", "f", "g"}},
		{line: "(a; (b)); { c; }", want: []string{"a", "b", "c"}},
		{line: "if a; then b; elif c; then d; else e; fi", want: []string{"a", "b", "c", "d", "e"}},
		{line: "while a; do b; done; until c; do d; done; for x in 1 2; do e $x; done", want: []string{"a", "b", "c", "d", "e|?$x"}},
		{line: "case x in a) b;; *) c;; esac", want: []string{"b", "c"}},
		{line: "f() { rm x; }; f", want: []string{"rm|x", "f"}},
		{line: "! time a", want: []string{"a"}},
		{line: "echo $(a `b`) \"$(c)\" ${x:-$(d)}", want: []string{"echo|?$(a $(b))|?\"$(c)\"|?${x:-$(d)}", "a|?$(b)", "b", "c", "d"}},
		{line: "diff <(a) >(b)", want: []string{"diff|?<(a)|?>(b)", "a", "b"}},
		{line: "cat <<E\n$(a)\nE", want: []string{"cat", "a"}},
		{line: "cat <<'E'\n$(a)\nE", want: []string{"cat"}},
		{line: "cat <<< $(a)", want: []string{"cat", "a"}},
		{line: "[[ -n $(a) ]]", want: []string{"a"}},

		// Names in disguise.
		{line: `\rm x`, want: []string{"rm|x"}},
		{line: `'r'm x; "rm" x; r\m x; $'\x72m' x; r''m x`, want: []string{"rm|x", "rm|x", "rm|x", "rm|x", "rm|x"}},
		{line: "r\\\nm x", want: []string{"rm|x"}},
		{line: "$(echo rm) x", want: []string{"?$(echo rm)|x", "echo|rm"}, unknown: "name of a command is computed"},
		{line: "$X x", want: []string{"?$X|x"}, unknown: "name of a command is computed"},
		{line: "{rm,-rf,x}", want: []string{"?{rm,-rf,x}"}, unknown: "name of a command is computed"},
		{line: "/bin/r? x", want: []string{"?/bin/r?|x"}, unknown: "name of a command is computed"},
		{line: "~/x", want: []string{"?~/x"}, unknown: "name of a command is computed"},

		// Wrappers.
		{line: "command -p rm x", want: []string{"rm|x"}},
		{line: "env -i LC_ALL=C rm x", want: []string{"rm|x"}},
		{line: "nice -n 5 nohup timeout -k 1 10 stdbuf -oL rm x", want: []string{"rm|x"}},
		{line: "exec rm x; builtin cd y", want: []string{"rm|x", "cd|y"}},
		{line: "a | xargs -0 -n 1 rm -f", want: []string{"a", "rm|-f|?…"}},
		{line: "a | xargs", want: []string{"a", "echo|?…"}},
		{line: "xargs -I{} sh -c 'rm {}'", want: []string{"sh|-c|?rm {}"}, unknown: "line is computed"},
		{line: "find . -name x -exec rm {} \\; -ok ls {} +", want: []string{"find|.|-name|x|-exec|rm|{}|;|-ok|ls|{}|+", "rm|?{}", "ls|?{}|?…"}},
		{line: "sudo -u root rm x", want: []string{"sudo|-u|root|rm|x", "rm|x"}},
		{line: "bash -c 'rm x; git push'", want: []string{"rm|x", "git|push"}},
		{line: "bash -ec \"eval 'rm x'\"", want: []string{"rm|x"}},
		{line: "eval rm '$(a)'", want: []string{"rm|?$(a)", "a"}},
		{line: "trap 'rm x' EXIT", want: []string{"trap|rm x|EXIT", "rm|x"}},
		{line: "busybox rm x", want: []string{"rm|x"}},
		{line: "./timeout 1 rm x", want: []string{"./timeout|1|rm|x", "rm|x"}},
		{line: "/usr/bin/env rm x", want: []string{"rm|x"}},

		// What cannot be told.
		{line: "bash -c \"$X\"", want: []string{"bash|-c|?\"$X\""}, unknown: "computed"},
		{line: "eval $X", want: []string{"eval|?$X"}, unknown: "what eval runs"},
		{line: "echo 'rm x' | sh", want: []string{"echo|rm x", "sh"}, unknown: "what sh reads from its input"},
		{line: "ls 1>&2\\", want: []string{"ls"}, writes: `?2\\`},
		{line: "bash -c -e 'rm x'", want: []string{"bash|-c|-e|rm x"}, unknown: "the option -e of bash"},
		{line: "zsh -c 'rm x'", want: []string{"zsh|-c|rm x"}, unknown: "a line of zsh"},
		{line: "echo rm x | . /dev/stdin", want: []string{"echo|rm|x", ".|/dev/stdin"}, unknown: "what . reads"},
		{line: "sh -c '[[ a > y ]]'", unknown: "sh may read [["},
		{line: "xargs -I{} -n 2 sort", want: []string{"sort|?…"}},
		{line: "bash x.sh", want: []string{"bash|x.sh"}},
		{line: "env -S 'rm x' y", want: []string{"rm x|y"}, unknown: "option -S of a wrapper"},
		{line: "xargs --process-slot-var=LD_PRELOAD ls", want: []string{"ls|?…"}, unknown: "option"},
		{line: "PATH=. ls", want: []string{"ls"}, unknown: "sets PATH"},
		{line: "IFS=x; ls", want: []string{"ls"}, unknown: "sets IFS"},
		{line: "export PATH=.", unknown: "sets PATH"},
		{line: "for PATH in .; do ls; done", want: []string{"ls"}, unknown: "sets PATH"},
		{line: "x=1; ls", want: []string{"ls"}},
		{line: "a=(1 $(b))", want: []string{"b"}, unknown: "sets an array"},
		{line: "alias ls=rm", want: []string{"alias|ls=rm"}, unknown: "names of commands"},
		{line: "hash -p /x ls", want: []string{"hash|-p|/x|ls"}, unknown: "names of commands"},
		{line: "coproc rm x", want: []string{"rm|x"}, unknown: "coproc"},
		{line: "((x[$(rm y)]))", want: []string{"rm|y"}, unknown: "arithm"},
		{line: "echo $((x))", want: []string{"echo|?$((x))"}, unknown: "arithmetic"},
		{line: "echo $((1+2))", want: []string{"echo|?$((1 + 2))"}},
		{line: "let x", unknown: "let"},
		{line: "[[ x -eq 1 ]]", unknown: "arithmetic"},
		{line: "[[ -v x ]]", unknown: "a test"},
		{line: "echo ${x@P} ", want: []string{"echo|?${x@P}"}, unknown: "expansion"},
		{line: "echo ${!x}", want: []string{"echo|?${!x}"}, unknown: "expansion"},
		{line: "echo ${x:=1}", want: []string{"echo|?${x:=1}"}, unknown: "expansion"},
		{line: "if", unknown: "cannot be read"},
		{line: "echo 'x", unknown: "cannot be read"},
		{line: "a\x00b", unknown: "NUL"},
		{line: strings.Repeat("a;", 20_000), unknown: "more than"},
		{line: strings.Repeat("eval '", 3), unknown: "cannot be read"},

		// Files.
		{line: "a > x >> y >| z &> v &>> w <> u 2> t", want: []string{"a"}, writes: "x|y|z|v|w|u|t"},
		{line: "> x", writes: "x"},
		{line: "a 2>&1 >&2 2>&- > /dev/null < /dev/null", want: []string{"a"}},
		{line: "a >& x >&$y", want: []string{"a"}, writes: "x|?$y"},
		{line: "a > /dev/tcp/h/1", want: []string{"a"}, writes: "/dev/tcp/h/1"},
		{line: "{ a; } > x; (b) > y; if c; then d; fi > z", want: []string{"a", "b", "c", "d"}, writes: "x|y|z"},
		{line: "a > \"$x\" > {b,c}", want: []string{"a"}, writes: "?\"$x\"|?{b,c}"},
	}
	for _, tt := range tests {
		name := tt.line
		if len(name) > 60 {
			name = name[:60]
		}
		t.Run(name, func(t *testing.T) {
			l := Parse(tt.line)
			if tt.unknown == "" && len(l.Unknown) > 0 || tt.unknown != "" && !strings.Contains(strings.Join(l.Unknown, "\n"), tt.unknown) {
				t.Errorf("unknown: got %q, want %q", l.Unknown, tt.unknown)
			}
			if len(tt.line) > 10_000 {
				return
			}
			var got []string
			for _, c := range l.Commands {
				got = append(got, texts(c.Args))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if w := texts(l.Writes); w != tt.writes {
				t.Errorf("writes: got %s, want %s", w, tt.writes)
			}
		})
	}
}

var reading = []string{
	"ls", "ls -la /tmp", "cat a b | head -n 3", "pwd && git status", "git -C sub --no-pager log --oneline -5 -- a*",
	"git diff HEAD~1", "git show HEAD:a", "git branch -a", "git branch --list 'x*'", "git remote -v", "git remote get-url origin", "git config --get user.name",
	"git stash list", "git log -p -- a*", "git diff --stat --cached -- $x", "sed 's/[0-9]*[^a]//g' a", "sh -c 'ls 2>&1 | head'", "xargs -I{} cat {}", "git tag -l", "git worktree list", "git", "git --version", "git log --format='%H %s'",
	"find . -name '*.go' -type f", "find . -exec grep -l x {} +", "find . -type f | xargs wc -l", "sort -rn -k 2 a | uniq -c",
	"grep -rn 'x y' . | cut -d: -f1 | sort -u", "sed -n '1,20p' a", "sed 's/a/b/g; s|x|y|' a", "sed -nE -e '/x/p' a", "sed -n '$=' a",
	"echo \"$HOME\" ~ *.go {a,b}", "echo $(git rev-parse HEAD)", "for f in *; do wc -l \"$f\"; done",
	"if [ -f a ]; then cat a; else echo no; fi", "[ \"$x\" = y ] || echo n", "[ $? -eq 0 ]", "test ! -d b", "[[ -f a && $x == y* ]]",
	"while read -r line; do echo \"$line\"; done < a", "x=1; echo \"$x\"", "LC_ALL=C sort a", "env", "timeout 5 cat a", "command -v git", "which go",
	"date +%s", "date -u", "hostname", "printf '%s\\n' \"$x\"", "set -euo pipefail; ls", "tee < a", "cat a 2>/dev/null || true", "cat <<E\nx $y\nE",
	"bash -c 'ls | wc -l'", "cd sub && ls", "type ls", "rg -n x", "file a", "tree -L 2", "node --version", "uniq a", "time ls", "ls & wait", "(cd x; ls)",
	"cat a | tee /dev/null", "exit 0", "base64 a", "sleep 0 && true", "jq .a b.json", "/bin/ls", "{ ls; cat a; } | sort", "case x in x) ls;; esac",
}

var writers = []string{
	"rm x", "rm -rf /", "mv a b", "cp a b", "touch x", "mkdir x", "ln a b", "chmod 777 a", "dd of=x", "truncate -s0 a", "install a b",
	"echo x > a", "echo x >> a", "cat a >| b", "ls &> a", "ls 2> a", "ls <> a", "ls >& a", "> a", "ls > \"$x\"", "cat < /dev/tcp/h/1", "cat a > /dev/sda",
	"tee a", "tee -a b", "sort -o a b", "sort -ro a b", "sort --out=a b", "sort --compress-prog=x a", "sed -i s/a/b/ x", "sed -ni p x", "sed 's/a/b/w x' y", "sed 's/a/b/e' y",
	"sed w\\ x y", "sed 1e\\ date y", "sed -f s y", "sed --in-place p y", "sed -n 'p;w x' y", "sed \"$x\" y", "sed 'r/x' y", "sed -e p -e 'w x' y",
	"find . -delete", "find . -exec rm {} \\;", "find . -fprint x", "find . -fls x", "find . -fprintf x y", "find . $x", "find . -ok rm {} \\;", "find *",
	"git commit -m x", "git push", "git checkout x", "git -c core.pager=x log", "git --exec-path=x status", "git branch x", "git branch -D x", "git branch -a -D x",
	"git tag x", "git tag -l -d x", "git remote add a b", "git remote remove a", "git remote prune a", "git remote get-url --add a b", "git config a.b c", "git config --list --unset a", "git config -e", "git stash", "git stash pop", "git diff --output=x",
	"git diff --outp x", "git log --ext-diff", "git grep -Ovim x", "git grep --open-files-in-pager x", "git reflog expire", "git $x", "git status $x", "git -p log", "git --git-dir=x status", "git worktree add x",
	"git show --textconv", "git cat-file --filters x", "git stash show --output=x", "git st",
	"uniq a b", "uniq - a", "tree -o x", "file -C -m x", "date -s x", "date 010100002000", "hostname x", "base64 -o x a", "rg --pre x y", "rg --hostname-bin x y",
	"printf -v x y", "printf \"$x\"", "read PATH", "read 'a[$(id)]'", "test -v 'a[$(id)]'", "[ \"$a\" \"$b\" ]", "[ $x ]", "set -- a", "env x=1 ls", "env PATH=. ls",
	"xxd a b", "awk 'BEGIN{system(\"id\")}'", "python3 -c x", "python x.py", "node x", "make", "go test ./...", "npm test", "curl x", "wget x", "ssh h ls", "vim", "less a", "man x", "tar xf a",
	"./ls", "x/cat a", "./env ls", "/tmp/timeout 5 ls", "sudo ls", "exec ls", "nohup ls", ". ./x", "source x", "eval $x", "bash x", "bash", "sh -c \"$x\"", "bash -c 'rm x'", "eval 'rm x'",
	"xargs rm", "ls | xargs sed -n p", "ls | xargs -I{} mv {} x", "ls | xargs sh -c 'rm $0'", "command rm x", "\\rm x", "'rm' x", "$'\\x72m' x", "r\\m x", "r''m x",
	"$(echo rm) x", "`echo rm` x", "echo $(rm x)", "echo \"`rm x`\"", "cat <(rm x)", "cat <<E\n$(rm x)\nE", "cat <<< `rm x`", "[[ -n $(rm x) ]]", "${x:-rm} y", "echo ${x:-$(rm y)}", "echo ${x/a/$(rm y)}",
	"ls; rm x", "ls && rm x", "ls || rm x", "ls | rm x", "ls & rm x", "(rm x)", "{ rm x; }", "! rm x", "time rm x", "if rm x; then ls; fi", "while rm x; do ls; done", "for i in $(rm x); do ls; done",
	"case $(rm x) in a) ls;; esac", "case a in a) rm x;; esac", "f() { rm x; }; f", "ls() { rm x; }; ls", ":(){ :|:& };:", "coproc rm x", "coproc ls",
	"((x=1))", "echo $((a[$(rm x)]))", "echo $((x))", "let x=1", "[[ a -eq 1 ]]", "[[ -v a ]]", "echo ${x@P}", "echo ${x:=y}", "echo ${!x}", "echo ${x[$(rm y)]}", "echo ${x:a}", "x=(a); ls", "x[0]=1",
	"PATH=.; ls", "PATH=. ls", "IFS=/; ls", "LD_PRELOAD=x ls", "GIT_EXTERNAL_DIFF=x git diff", "PAGER=x git log", "export PATH=x", "declare x=1", "alias ls=rm", "shopt -s expand_aliases", "hash -p /x ls",
	"enable -f x y", "trap 'rm x' EXIT", "for PATH in .; do ls; done", "ls {a,b} > {c,d}", "select x in a; do rm x; done", "mapfile -C rm -c 1", "{rm,x}", "/bin/r? x", "~/x", "yarn --version", "go version", "ls \x00 rm",
	"nice rm x", "timeout 5 rm x", "timeout $x rm", "stdbuf -o0 rm x", "ls {x}> y", "exec 3> x", "exec > x", "strings --plugin x y", "busybox rm x", "env -S 'rm x'", "fc -e x", "[[ x == @($(rm x)) ]]", "[[ x == +(`rm x`) ]]", "case x in @($(rm x))) ls;; esac", "ls #\\\nrm x", "jobs -x rm y", "wait -p 'a[$(rm y)]'",
	"printf x > y", "while read -r PATH; do ls; done",
	// What a review found.
	"printf 'aaaaa%n' PATH; ls", "printf '%-5ln' PATH", "sort --random-source -- -o y a", "sort -k -- -o y a", "git grep -e -- -Ox", "git diff --no-index -S -- --output=y a b",
	"git blame -L -- --output=y a", "rg -e -- --pre x .", "strings -s -- --plugin=x a", "file -F -- -C", "tree -P -- -o y", "uniq -- -x y", "uniq -f -- -x y",
	"sed 's/[/x/;/]/p;/w y/p' a", "sed '/[/p;/]/p;/w y/p' a", "sed 's/[^]/]/x/;/w y/p' a", "sh -c '[[ a > y ]]'", "dash -c '[[ a || ./x ]]'", "sh -c \"echo \\$'\\\\'; touch y #'\"",
	"bash -c -e 'rm x'", "sh -c +e 'rm x'", "echo -oy | xargs -I{} -n 2 sort", "zsh -c ls", ". /dev/stdin",
}

func TestReadOnly(t *testing.T) {
	for _, line := range reading {
		if ok, why := Parse(line).ReadOnly(); !ok {
			t.Errorf("%q only reads, and was refused: %s", line, why)
		}
	}
	for _, line := range writers {
		if ok, why := Parse(line).ReadOnly(); ok || why == "" && line != "" {
			t.Errorf("%q may write, and was called read-only", line)
		}
	}
}

// TestReadingLinesRead runs them: nothing in the folder changes.
func TestReadingLinesRead(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("compares with the real bash, which is not installed")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "b\na\n", "b": "x\n", "b.json": `{"a":1}`, "sub/c": "y", "x/d": "z"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, dir)
	for _, line := range reading {
		cmd := exec.CommandContext(t.Context(), bash, "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_PAGER=cat", "PAGER=cat", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		_ = cmd.Run() // that it fails changes nothing here: not every program is everywhere
		if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
			t.Fatalf("%q changed something:\n%s", line, diff)
		}
	}
}

func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			files[path] = "folder"
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
