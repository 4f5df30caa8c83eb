package permission

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

func TestParseRule(t *testing.T) {
	for _, s := range []string{"bash", "bash(*)", "bash(git status)", "bash(npm run *)", "bash(=a | b (c))", "edit", "edit(src/**)", "edit(/a/b)", "edit(~/x)",
		"read(secrets/**)", "read", "fetch", "fetch(https://go.dev/*)", "fetch(*.go.dev)", "search", "mount", "tool(name)", "tool(mcp_*)", " bash( x ) "} {
		if r, err := ParseRule(s); err != nil || r.String() != strings.TrimSpace(s) {
			t.Errorf("%q: %v, %v", s, r, err)
		}
	}
	for s, want := range map[string]string{
		"": "there is no rule", "sh(x)": `there is no rule "sh"`, "bash(": "no ) at its end", "bash()": "nothing between", "bash(x": "no ) at its end",
		"edit([)": "no pattern", "fetch(ftp://x)": "only http and https", "search(x)": "takes nothing", "mount(x)": "takes nothing", "tool": "needs the name",
		"tool(a b)": "no name", "bash(\x00)": "NUL", "bash(" + strings.Repeat("x", limits.PermissionRule) + ")": "more than",
	} {
		_, err := ParseRule(s)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rules are bash,") || len(err.Error()) > 1000 {
			t.Errorf("%.40q: %v", s, err)
		}
	}
	if _, err := ParseRules(make([]string, limits.PermissionRules+1)); err == nil {
		t.Error("too many rules")
	}
	if _, err := ParseRules([]string{"bash", "x"}); err == nil {
		t.Error("a wrong rule among others")
	}
	if _, err := ParseMode("loose"); err == nil || !strings.Contains(err.Error(), "ask, auto-edit, full or read-only") {
		t.Errorf("got %v", err)
	}
}

// TestRules: what rules make of acts, in a mode.
func TestRules(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"src", "secrets", "sub"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("secrets", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	run := func(line string) any { return bash.Run{Command: line, Workdir: dir} }
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string) any { return fs.Write{Path: at(name)} }
	fetch := func(url string) any { return web.PendingFetch{URL: url} }
	tests := []struct {
		mode        Mode
		allow, deny string // rules, by ;
		act         any
		want        string // allow, ask, deny
	}{
		// Every command has to be allowed.
		{Ask, "bash(npm run *)", "", run("npm run build"), "allow"},
		{Ask, "bash(npm run *)", "", run("npm run"), "allow"},
		{Ask, "bash(npm run *)", "", run("npm install"), "ask"},
		{Ask, "bash(npm run *)", "", run("npm run build && npm run test | tail -n 5"), "allow"},
		{Ask, "bash(npm run *)", "", run("npm run build && rm x"), "ask"},
		{Ask, "bash(npm run *)", "", run("npm run build; echo $(rm x)"), "ask"},
		{Ask, "bash(npm run *)", "", run("npm run `rm x`"), "ask"},
		{Ask, "bash(npm run *)", "", run("npm run \"$X\""), "ask"},
		{Ask, "bash(npm run *)", "", run("npm run build > out"), "ask"},
		{Ask, "bash(npm run *);edit(out)", "", run("npm run build > out"), "allow"},
		{Ask, "bash(npm run *);edit(out)", "", run("cd sub && npm run build > out"), "ask"},
		{Ask, "bash(npm run *);edit(src/**)", "", run("npm run build > src/../../x"), "ask"},
		{Ask, "bash(npm run *);edit(link/**)", "", run("npm run build > link/x"), "ask"}, // the link leads elsewhere
		{Ask, "bash(npm run *)", "", run("PATH=. npm run build"), "ask"},
		{Ask, "bash(npm run *)", "", run("./npm run build"), "ask"},
		{Ask, "bash(npm run *)", "", run("eval \"npm run build\""), "allow"},
		{Ask, "bash(npm run *)", "", run("bash -c 'npm run build; rm x'"), "ask"},
		{Ask, "bash(git status)", "", run("timeout 10 git status"), "allow"},
		{Ask, "bash(timeout 10 make)", "", run("timeout 10 make"), "allow"},
		{Ask, "bash(make)", "", run("sudo make"), "ask"},
		{Ask, "bash(make);bash(sudo *)", "", run("sudo make"), "allow"},
		{Ask, "bash(make *)", "", run("ls | xargs make"), "ask"},
		{Ask, "bash(make)", "", run("make() { rm x; }; make"), "ask"},
		{Ask, "bash(=make | sh)", "", run("make | sh"), "allow"},
		{Ask, "bash(=make | sh)", "", run("make | sh; rm x"), "ask"},
		{Ask, "bash(make)", "", run("make | sh"), "ask"},
		{Ask, "bash", "", run("rm -rf $X | sh"), "allow"},
		{Ask, "bash(*)", "", run("rm"), "allow"},
		{Ask, "bash(go test ./*)", "", run("go test ./a"), "allow"},
		{Ask, "bash(go test ./*)", "", run("go test ./a -exec x"), "ask"},
		{ReadOnly, "bash", "", run("rm x"), "deny"},

		// One denied command denies.
		{Full, "", "bash(rm *)", run("ls"), "allow"},
		{Full, "", "bash(rm *)", run("rm x"), "deny"},
		{Full, "bash", "bash(rm *)", run("ls; (echo $(rm x))"), "deny"},
		{Full, "bash(rm *)", "bash(rm *)", run("rm x"), "deny"},
		{Full, "", "bash(rm *)", run("\\rm x"), "deny"},
		{Full, "", "bash(rm *)", run("/bin/rm x"), "deny"},
		{Full, "", "bash(rm *)", run("sudo -u root rm x"), "deny"},
		{Full, "", "bash(rm *)", run("find . -exec rm {} +"), "deny"},
		{Full, "", "bash(rm *)", run("ls | xargs rm"), "deny"},
		{Full, "", "bash(rm *)", run("bash -c 'rm x'"), "deny"},
		{Full, "", "bash(rm *)", run("docker run -it img rm x"), "deny"},
		{Full, "", "bash(rm *)", run("f() { rm x; }; f"), "deny"},
		{Full, "", "bash(rm *)", run("$X x"), "ask"},
		{Full, "bash", "bash(rm *)", run("echo 'rm x' | sh"), "ask"},
		{Full, "", "bash(rm *)", run("alias l=rm"), "ask"},
		{Full, "", "bash(git push *)", run("git -C . -c a=b push -f"), "deny"},
		{Full, "", "bash(git push *)", run("git $X"), "ask"},
		{Full, "", "bash(bash -c *)", run("bash -c ls"), "deny"},
		{Full, "", "bash(sudo *)", run("sudo ls"), "deny"},
		{Full, "", "bash", run("ls"), "deny"},

		// Paths.
		{Ask, "edit", "", write("x"), "allow"},
		{Ask, "edit(src/**)", "", write("src/a/b.go"), "allow"},
		{Ask, "edit(src/)", "", write("src/a/b.go"), "allow"},
		{Ask, "edit(./src/*.go)", "", write("src/b.go"), "allow"},
		{Ask, "edit(src/**)", "", write("src2/b.go"), "ask"},
		{Ask, "edit(*.go)", "", write("src/b.go"), "ask"},
		{Ask, "edit(**/*.go)", "", write("src/b.go"), "allow"},
		{Ask, "edit(" + dir + "/a\\[1\\])", "", write("a[1]"), "allow"},
		{Ask, "edit(src/*)", "", fs.Removal{Path: at("src/a"), Recursive: true}, "ask"},
		{Ask, "edit(src/**)", "", fs.Removal{Path: at("src/a"), Recursive: true}, "allow"},
		{AutoEdit, "", "edit(secrets/**)", write("secrets/x"), "deny"},
		{AutoEdit, "", "edit(secrets/**)", write("x"), "allow"},
		{AutoEdit, "", "edit(src/a/*)", fs.Removal{Path: at("src"), Recursive: true}, "deny"},
		{AutoEdit, "", "", fs.Removal{Path: dir, Recursive: true}, "ask"},
		{AutoEdit, "", "", fs.Write{Path: filepath.Dir(dir) + "/x"}, "ask"},
		{AutoEdit, "", "", fs.NewFolder{Path: at(".GIT/hooks")}, "ask"},
		{AutoEdit, "edit(.git/**)", "", write(".git/config"), "allow"},
		{Full, "", "edit(secrets/**)", run("echo x > secrets/y"), "deny"},
		{Full, "", "edit(secrets/**)", run("echo x > link/y"), "deny"},
		{Full, "", "edit(secrets/**)", run("echo x > $Y"), "ask"},
		{Full, "", "edit(secrets/**)", run("rm secrets/y"), "deny"},
		{Full, "", "edit(secrets/**)", run("cat secrets/y"), "allow"},
		{Full, "", "read(secrets/**)", run("cat secrets/y"), "deny"},
		{Full, "", "read(secrets/**)", run("cat < secrets/y"), "deny"},
		{Full, "", "read(secrets/**)", run("dd if=secrets/y"), "deny"},
		{Full, "", "read(secrets/**)", fs.Read{Path: at("secrets/y")}, "deny"},
		{ReadOnly, "", "read(secrets/**)", fs.Read{Path: at("x")}, "allow"},
		{ReadOnly, "edit", "", write("x"), "deny"},

		// The web.
		{Ask, "fetch(https://go.dev/*)", "", fetch("https://go.dev/doc"), "allow"},
		{Ask, "fetch(https://go.dev)", "", fetch("https://go.dev/doc"), "allow"},
		{Ask, "fetch(https://go.dev/*)", "", fetch("http://go.dev/doc"), "ask"},
		{Ask, "fetch(https://go.dev/*)", "", fetch("https://go.dev.evil.com/doc"), "ask"},
		{Ask, "fetch(https://go.dev/*)", "", fetch("https://evil.com/https://go.dev/"), "ask"},
		{Ask, "fetch(https://*.go.dev/*)", "", fetch("https://pkg.go.dev/x"), "allow"},
		{Ask, "fetch(https://*.go.dev/*)", "", fetch("https://evil.com/.go.dev/x"), "ask"},
		{Ask, "fetch(https://*.go.dev/*)", "", fetch("https://evil.com?.go.dev/x"), "ask"},
		{Ask, "fetch(*.go.dev)", "", fetch("http://a.go.dev"), "allow"},
		{Ask, "fetch(https://go.dev/doc/*)", "", fetch("https://go.dev/blog"), "ask"},
		{Ask, "fetch(https://go.dev:8443/*)", "", fetch("https://go.dev/x"), "ask"},
		{Full, "", "fetch(*.evil.com)", fetch("https://a.evil.com/x"), "deny"},
		{ReadOnly, "fetch", "", fetch("https://go.dev/"), "allow"},
		{Ask, "search", "", web.PendingSearch{Query: "x"}, "allow"},
		{Ask, "fetch", "", web.PendingSearch{Query: "x"}, "ask"},
		{Full, "", "search", web.PendingSearch{Query: "x"}, "deny"},

		// Tools.
		{Ask, "tool(x_*)", "", mountedCall("x_y"), "allow"},
		{Ask, "tool(x_*)", "", mountedCall("y"), "ask"},
		{Full, "", "tool(y)", mountedCall("y"), "deny"},
		{ReadOnly, "tool(y)", "", mountedCall("y"), "deny"},
		{Ask, "mount", "", &tool.Exec{Name: mountTool, Arguments: []byte(`{"code":"x"}`), Tool: &tool.View{}}, "allow"},
		{Full, "", "mount", &tool.Exec{Name: mountTool, Arguments: []byte(`{"code":"x"}`), Tool: &tool.View{}}, "deny"},
		{Full, "", "tool(cordis_*)", &tool.Exec{Name: mountTool, Arguments: []byte(`{"code":"x"}`), Tool: &tool.View{}}, "deny"},
	}
	for _, tt := range tests {
		var a *act
		if exec, ok := tt.act.(*tool.Exec); ok {
			a = call(context.Background(), exec)
		} else {
			a = intent(context.Background(), tt.act)
		}
		b, err := newBinding(Binding{Mode: tt.mode, Allow: rules(t, tt.allow), Deny: rules(t, tt.deny), Roots: []string{dir}})
		if err != nil {
			t.Fatal(err)
		}
		if got, why := (&Policy{}).table(a, b); string(got) != tt.want {
			t.Errorf("%s in %s, allow %q, deny %q: got %s %s, want %s", a.summary, tt.mode, tt.allow, tt.deny, got, why, tt.want)
		}
	}
}

func rules(t *testing.T, list string) []Rule {
	t.Helper()
	if list == "" {
		return nil
	}
	r, err := ParseRules(strings.Split(list, ";"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mountedCall(name string) *tool.Exec {
	return &tool.Exec{Name: name, Arguments: []byte(`{}`), Tool: &tool.View{Name: name, Mount: &tool.Mount{ID: "dyn-1", Source: "hash"}}}
}

// TestRemembered: what a rule for the session allows is the act that it was asked
// about, and as little more as its words say.
func TestRemembered(t *testing.T) {
	for act, want := range map[string]string{
		"go test ./a": "bash(go test *)", "git commit -m 'x y'": "bash(git commit *)", "git push": "bash(=git push)", "npm run x": "bash(=npm run x)",
		"go test ./a > x": "bash(=go test ./a > x)", "go test ./a; rm x": "bash(=go test ./a; rm x)", "make (": "bash(=make ()", "timeout 1 go test": "bash(=timeout 1 go test)",
	} {
		a := intent(context.Background(), bash.Run{Command: act, Workdir: "/"})
		rule, words := a.remember()
		if rule != want || words == "" {
			t.Errorf("%s: %s, %q", act, rule, words)
		}
		if r, err := ParseRule(rule); err != nil || !a.allowed([]Rule{r}, nil) {
			t.Errorf("%s: the rule %s does not allow it: %v", act, rule, err)
		}
	}
	weird := fs.Write{Path: "/a*b/{c}[d]?\\e (f)"}
	a := intent(context.Background(), weird)
	rule, _ := a.remember()
	r, err := ParseRule(rule)
	if err != nil || !a.allowed([]Rule{r}, nil) || intent(context.Background(), fs.Write{Path: "/aXb/{c}[d]?\\e (f)"}).allowed([]Rule{r}, nil) {
		t.Errorf("rule %s: %v", rule, err)
	}
}

// FuzzParseRule: whatever a rule is, it parses or says why, and matching does not
// panic.
func FuzzParseRule(f *testing.F) {
	for _, s := range []string{"bash(git *)", "edit(src/**)", "fetch(https://*.go.dev/*)", "tool(x)", "bash(=x)", "edit({a,b})", "read([a-z]\\*)"} {
		f.Add(s, "git push", "/src/a")
	}
	f.Fuzz(func(t *testing.T, s, line, path string) {
		r, err := ParseRule(s)
		if err != nil {
			return
		}
		if again, err := ParseRule(r.String()); err != nil || again.text != r.text {
			t.Fatalf("%q reads as %q: %v", s, r, err)
		}
		for _, payload := range []any{bash.Run{Command: line, Workdir: "/"}, fs.Write{Path: "/" + path}, fs.Removal{Path: "/" + path, Recursive: true}, web.PendingFetch{URL: "https://" + path}} {
			a := intent(context.Background(), payload)
			a.allowed([]Rule{r}, []string{"/src"})
			a.denied([]Rule{r}, []string{"/src"})
		}
	})
}

// TestBounds: what is remembered and what is logged of mounts is bounded.
func TestBounds(t *testing.T) {
	b, err := newBinding(Binding{Mode: Ask})
	if err != nil {
		t.Fatal(err)
	}
	for range limits.PermissionRules + 10 {
		b.remember(remembered{Rule{name: ruleSearch}, ""})
	}
	if n := len(b.remembered); n != limits.PermissionRules {
		t.Errorf("%d rules are remembered", n)
	}
	logged := 0
	for range limits.PermissionDenials + 10 {
		if b.logsDenial() {
			logged++
		}
	}
	if logged != limits.PermissionDenials {
		t.Errorf("%d denials are logged", logged)
	}
	if _, err := newBinding(Binding{Mode: Ask, Deny: make([]Rule, limits.PermissionRules+1)}); err == nil {
		t.Error("too many rules")
	}
	code := strings.Repeat("x", limits.Source)
	exec := &tool.Exec{Name: mountTool, Arguments: []byte(`{"code":"` + code + `"}`), Tool: &tool.View{}}
	if q := (&Policy{}).question(context.Background(), call(context.Background(), exec)); !strings.HasSuffix(q.Detail, code) {
		t.Error("the largest code is cut")
	}
}
