package permission_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// trusting is a rig that notes what is handed to trust: "path: before -> content".
func trusting(t *testing.T) (*rig, func() []string) {
	var got []string
	r := newRig(t, permission.Config{Trusted: func(_ context.Context, path string, before *string, content string) {
		was := "anything"
		if before != nil {
			was = *before
		}
		got = append(got, filepath.Base(path)+": "+was+" -> "+content)
	}})
	return r, func() []string { list := got; got = nil; return list }
}

// TestLoaded: whatever changes what plugins are loaded from needs the permission of a
// mount, by whatever name it is reached.
func TestLoaded(t *testing.T) {
	for _, c := range []struct{ name, do, arg string }{
		{"plugin", "write", ".dsh/plugins/x.js"},
		{"rows", "write", ".dsh/cordis.yml"},
		{"edit", "edit", ".dsh/plugins/old.js"},
		{"other", "write", ".dsh/README.md"},
		{"deep", "write", "a/b/.dsh/plugins/x.ts"},
		{"case", "write", ".DSH/plugins/x.js"},
		{"agent", "write", "presets/agent.cordis.yml"},
		{"agentcase", "write", "Agent.Cordis.YML"},
		{"link", "write", "innocent/x.js"},
		{"filelink", "write", "innocent.txt"},
		{"mkdir", "mkdir", "new/.dsh"},
		{"remove", "remove", ".dsh/plugins/old.js"},
		{"removeall", "remove", ".dsh"},
		{"removeproject", "remove", "project"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, permission.Config{})
			r.write(".dsh/plugins/old.js", "old")
			r.write("project/.dsh/cordis.yml", "[]")
			r.write("new/keep", "")
			for link, to := range map[string]string{"innocent": ".dsh/plugins", "innocent.txt": ".dsh/plugins/old.js"} {
				if err := os.Symlink(to, filepath.Join(r.dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			rules, err := permission.ParseRules([]string{"edit", "edit(**)", "edit(.dsh/**)", "edit(project/**)"})
			if err != nil {
				t.Fatal(err)
			}
			r.bind(permission.Binding{Mode: permission.AutoEdit, Allow: rules}, false)
			if res := r.act(c.do, c.arg); !res.IsError || !strings.Contains(selfmodtest.Text(res), "the user denied it") {
				t.Fatalf("not asked: %s", selfmodtest.Text(res))
			}
			q := r.asked()
			if len(q) != 1 || q[0].Kind != permission.KindMount || !strings.Contains(q[0].Detail, "runs as a plugin") || !strings.Contains(q[0].Summary, "plugin") {
				t.Fatalf("asked %+v", q)
			}
			if err := r.policy.SetMode(r.scope, permission.ReadOnly, "user"); err != nil {
				t.Fatal(err)
			}
			if res := r.act(c.do, c.arg); !res.IsError || !strings.Contains(selfmodtest.Text(res), "read-only") || len(r.asked()) > 0 {
				t.Errorf("read-only: %s", selfmodtest.Text(res))
			}
			if err := r.policy.SetMode(r.scope, permission.Full, "user"); err != nil {
				t.Fatal(err)
			}
			if res := r.act(c.do, c.arg); res.IsError || len(r.asked()) > 0 {
				t.Errorf("full: %s", selfmodtest.Text(res))
			}
		})
	}
}

// TestLoadedTrusted: what a person allowed, at a question or by the rule mount, is
// handed on with the very bytes; what was refused, remembered for other bytes, allowed
// by mode full or done by a command is not.
func TestLoadedTrusted(t *testing.T) {
	const file = ".dsh/plugins/x.js"
	tests := map[string]struct {
		mode     permission.Mode
		allow    string
		answer   permission.Answer
		headless bool
		do, arg  string
		again    bool
		want     []string
		asked    int
	}{
		"write":    {answer: permission.Answer{Allow: true}, do: "write", arg: file, want: []string{"x.js: anything -> new"}, asked: 1},
		"edit":     {answer: permission.Answer{Allow: true}, do: "edit", arg: file, want: []string{"x.js: old -> new"}, asked: 1},
		"no":       {do: "write", arg: file, asked: 1},
		"autoedit": {mode: permission.AutoEdit, answer: permission.Answer{Allow: true}, do: "write", arg: file, want: []string{"x.js: anything -> new"}, asked: 1},
		"full":     {mode: permission.Full, do: "write", arg: file},
		"fullrule": {mode: permission.Full, allow: "mount", do: "write", arg: file},
		"rule":     {allow: "mount", headless: true, do: "write", arg: file, want: []string{"x.js: anything -> new"}},
		"headless": {headless: true, do: "write", arg: file},
		"bash":     {allow: "bash", do: "bash", arg: "echo new > " + file},
		"outside":  {answer: permission.Answer{Allow: true}, do: "write", arg: "a.txt", asked: 1},
		"remember": {answer: permission.Answer{Allow: true, Remember: true}, do: "write", arg: file, again: true,
			want: []string{"x.js: anything -> new", "x.js: anything -> new"}, asked: 1},
		"noremember": {answer: permission.Answer{Allow: true, Remember: true}, do: "remove", arg: ".dsh/plugins/y.js", asked: 1},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			r, got := trusting(t)
			r.write(file, "old")
			r.write(".dsh/plugins/y.js", "old")
			var allow []permission.Rule
			if c.allow != "" {
				rule, err := permission.ParseRule(c.allow)
				if err != nil {
					t.Fatal(err)
				}
				allow = append(allow, rule)
			}
			r.bind(permission.Binding{Mode: c.mode, Allow: allow}, c.headless)
			r.answers(c.answer)
			r.act(c.do, c.arg)
			if c.again {
				r.act(c.do, c.arg)
			}
			q := r.asked()
			if diff := cmp.Diff(c.want, got()); diff != "" || len(q) != c.asked {
				t.Errorf("asked %d times, want %d: %+v\n%s", len(q), c.asked, q, diff)
			}
			if name == "noremember" && q[0].Remember != "" {
				t.Errorf("offers to remember %q", q[0].Remember)
			}
		})
	}
}

// TestLoadedUntrusted: in mode full the model is told that what it wrote does not count
// yet; where a person allowed it, and of anything else, it is told nothing.
func TestLoadedUntrusted(t *testing.T) {
	for _, c := range []struct {
		name, path string
		mode       permission.Mode
		rules      []string
		want       bool
	}{
		{"full", ".dsh/plugins/x.js", permission.Full, nil, true},
		{"elsewhere", "x.js", permission.Full, nil, false},
		{"by_a_rule", ".dsh/plugins/x.js", permission.AutoEdit, []string{"mount"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, trusted := trusting(t)
			rules, err := permission.ParseRules(c.rules)
			if err != nil {
				t.Fatal(err)
			}
			r.bind(permission.Binding{Mode: c.mode, Allow: rules}, true)
			res := r.act("write", c.path)
			if res.IsError {
				t.Fatal(selfmodtest.Text(res))
			}
			told := ""
			for _, m := range res.Contexts {
				for _, b := range m.Content {
					told += b.Text
				}
			}
			want := ""
			if c.want {
				want = filepath.Join(r.dir, c.path) + " was written, but not trusted by that: dsh loads it only when a person has trusted it. " +
					"Tell them to look at it and run `dsh trust`; it goes live then, without a restart. " +
					"(Where the run trusts the whole project, with --trust-project, it is live already.)"
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Error(diff)
			}
			if got := trusted(); (len(got) > 0) != (c.rules != nil) {
				t.Errorf("trusted %q", got)
			}
		})
	}
}

// TestLoadedMount: a temporary plugin asks as the model does, nothing that was
// remembered for the model or for mounting holds for it, and the question shows the
// very bytes and who writes them.
func TestLoadedMount(t *testing.T) {
	r, got := trusting(t)
	r.write(".dsh/plugins/x.js", "old")
	r.bind(permission.Binding{}, false)
	r.answers(permission.Answer{Allow: true, Remember: true})
	r.mounted(plugin("m"))
	r.act("write", ".dsh/plugins/x.js")
	r.asked()
	got()
	if res := r.call("m_write", map[string]string{"arg": ".dsh/plugins/x.js"}); res.IsError {
		t.Fatal(selfmodtest.Text(res))
	}
	q := r.asked()
	if len(q) != 2 || q[1].Kind != permission.KindMount || q[1].Mount == "" || !strings.HasSuffix(q[1].Detail, "The whole file would be:\nnew") {
		t.Fatalf("asked %+v", q)
	}
	if diff := cmp.Diff([]string{"x.js: anything -> new"}, got()); diff != "" {
		t.Error(diff)
	}
}

// TestLoadedDenied: rules deny as they say, and a denial without a person teaches.
func TestLoadedDenied(t *testing.T) {
	r := newRig(t, permission.Config{})
	rule, err := permission.ParseRule("edit(.dsh/**)")
	if err != nil {
		t.Fatal(err)
	}
	mount, _ := permission.ParseRule("mount")
	r.bind(permission.Binding{Allow: []permission.Rule{mount}, Deny: []permission.Rule{rule}}, true)
	if text := selfmodtest.Text(r.act("write", ".dsh/x.js")); !strings.Contains(text, "denied by the rule edit(.dsh/**)") {
		t.Error(text)
	}
	plain := newRig(t, permission.Config{})
	plain.bind(permission.Binding{}, true)
	if text := selfmodtest.Text(plain.act("write", ".dsh/x.js")); !strings.Contains(text, "--allow mount") || !strings.Contains(text, "dsh trust") {
		t.Error(text)
	}
}

// TestLoadedElsewhere: a file that the documents of a person load is as one in .dsh.
func TestLoadedElsewhere(t *testing.T) {
	var dir string
	r := newRig(t, permission.Config{Loads: func(path string) bool { return path == filepath.Join(dir, "dev.yml") }})
	dir = r.dir
	r.bind(permission.Binding{Mode: permission.AutoEdit}, false)
	if res := r.act("write", "dev.yml"); !res.IsError {
		t.Errorf("not asked: %s", selfmodtest.Text(res))
	}
	if q := r.asked(); len(q) != 1 || q[0].Kind != permission.KindMount {
		t.Errorf("asked %+v", q)
	}
	if res := r.act("write", "other.yml"); res.IsError || len(r.asked()) > 0 {
		t.Errorf("another file: %s", selfmodtest.Text(res))
	}
}
