package composition

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReload: one edit changes every tree that it concerns, and says so in one line.
func TestReload(t *testing.T) {
	r := newRig(t)
	r.o.TrustProject = true
	r.inProject("plugins/ours.js", says("ours", "one"))
	r.must(r.start())
	p, err := r.Place(r.ctx(), r.project)
	r.must(err)
	agent, scope := r.agent(p)
	r.inHome("cordis.yml", "- name: helper\n- {id: crew, disabled: true}\n")
	r.inHome("plugins/mine.js", says("mine", "hello"))
	r.inProject("plugins/ours.js", says("ours", "two"))
	r.must(r.Reload(r.ctx()))
	want := map[string]string{"tools": "running", "timer": "running", "helper": "running", "crew": "disabled", "mine": "running", "ours": "running"}
	if diff := cmp.Diff(want, r.states(scope)); diff != "" {
		t.Error(diff)
	}
	if a, b := r.answer(scope, "ours"), r.answer(scope, "mine"); a != "two" || b != "hello" {
		t.Errorf("%q, %q", a, b)
	}
	r.want("reloaded: +helper, +mine, ours, -crew")
	r.must(r.Reload(r.ctx()))
	r.want("nothing has changed")

	_, err = agent.Dispose(r.ctx())
	r.must(err)
	r.inHome("cordis.yml", "- name: helper\n")
	r.must(r.Reload(r.ctx()))
	if got := r.states(scope); got["crew"] != "" {
		t.Error("the rows of an agent that has gone are told of", got)
	}
}

// TestReloadRefused: what is wrong anywhere changes nothing anywhere, and is told.
func TestReloadRefused(t *testing.T) {
	for _, tt := range []struct{ name, file, text, told string }{
		{"document", "home/cordis.yml", "- {name: helper, colour: red}\n", "colour"},
		{"plugin", "home/cordis.yml", "- name: helpers\n", "helper"},
		{"project_document", "cordis.yml", "- {id: timer, disabled: true}\n", "a project may"},
		{"file_throws", "plugins/ours.js", "export default { name: 'ours', apply() { throw new Error('spoiled') } }", "spoiled"},
		{"file_no_module", "plugins/ours.js", "return {}", "export default"},
		{"file_waits", "plugins/ours.js", "export default { name: 'ours', inject: ['absent'], apply() {} }", "absent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.o.TrustProject = true
			r.inProject("plugins/ours.js", says("ours", "one"))
			r.must(r.start())
			p, err := r.Place(r.ctx(), r.project)
			r.must(err)
			before := r.states(p.Scope())
			r.inHome("plugins/mine.js", says("mine", "hello")) // what is right beside it
			if name, ok := strings.CutPrefix(tt.file, "home/"); ok {
				r.inHome(name, tt.text)
			} else {
				r.inProject(tt.file, tt.text)
			}
			if err := r.Reload(r.ctx()); !errors.Is(err, ErrRefused) {
				t.Errorf("it was not refused: %v", err)
			}
			if diff := cmp.Diff(before, r.states(p.Scope())); diff != "" {
				t.Error(diff)
			}
			if a, b := r.answer(p.Scope(), "ours"), r.answer(nil, "mine"); a != "one" || b == "hello" {
				t.Errorf("%q, %q", a, b)
			}
			r.want(tt.told)
			if n := (told{r.Composition}).Notices(p.Scope()); len(n) != 1 || !strings.Contains(n[0], tt.told) {
				t.Errorf("notices: %q", n)
			}
			r.must(os.Remove(r.path(tt.file)))
			r.inProject("plugins/ours.js", says("ours", "two"))
			r.must(r.Reload(r.ctx()))
			if a, b := r.answer(p.Scope(), "ours"), r.answer(nil, "mine"); a != "two" || b != "hello" {
				t.Errorf("%q, %q", a, b)
			}
			if n := (told{r.Composition}).Notices(p.Scope()); len(n) != 0 {
				t.Errorf("notices: %q", n)
			}
		})
	}
}

func (r *rig) path(file string) string {
	if name, ok := strings.CutPrefix(file, "home/"); ok {
		return filepath.Join(r.home, name)
	}
	return filepath.Join(r.project, ".dsh", file)
}

// TestReloadOverlap: edits that come during reloads are not lost.
func TestReloadOverlap(t *testing.T) {
	r := newRig(t)
	r.must(r.start())
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 5 {
				if err := r.Reload(r.ctx()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	r.inHome("cordis.yml.tmp", "- name: helper\n")
	r.must(os.Rename(filepath.Join(r.home, "cordis.yml.tmp"), filepath.Join(r.home, "cordis.yml")))
	wait.Wait()
	r.must(r.Reload(r.ctx()))
	if got := r.states(nil)["helper"]; got != "running" {
		t.Error(got)
	}
}

// TestReloadWatched: a project that appears in the folder of a session is followed.
func TestReloadWatched(t *testing.T) {
	r := newRig(t)
	r.o.Watch, r.o.TrustProject = true, true
	r.must(r.start())
	p, err := r.Place(r.ctx(), r.project)
	r.must(err)
	r.inProject("plugins/ours.js", says("ours", "one"))
	r.until(func() bool { return r.answer(p.Scope(), "ours") == "one" })
	r.inProject("plugins/folder/index.ts", "import { word } from './word'\n"+says("theirs", "${word}"))
	r.inProject("plugins/folder/word.ts", "export const word: string = 'from a folder'\n")
	r.until(func() bool { return r.states(p.Scope())["folder"] == "running" })
	r.inHome("cordis.yml", "- name: helper\n")
	r.until(func() bool { return r.states(nil)["helper"] == "running" })
	r.must(os.RemoveAll(filepath.Join(r.project, ".dsh")))
	r.until(func() bool { return r.states(p.Scope())["ours"] == "" })
}

// until waits for what the watcher leads to.
func (r *rig) until(ok func() bool) {
	r.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			r.Fatalf("it did not happen; told: %q, rows: %v", r.told, r.states(nil))
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestWrote: what an agent wrote and a person allowed is there when it is written.
func TestWrote(t *testing.T) {
	r := newRig(t)
	r.must(r.start())
	p, err := r.Place(r.ctx(), r.project)
	r.must(err)
	text := says("ours", "kept")
	r.inProject("plugins/ours.js", text)
	r.Wrote(r.ctx(), filepath.Join(r.project, ".dsh/plugins/ours.js"), nil, text)
	if got := r.answer(p.Scope(), "ours"); got != "kept" {
		t.Errorf("%q; told: %q", got, r.told)
	}
}

// TestUnreadable: a project's file that cannot be read now has not gone.
func TestUnreadable(t *testing.T) {
	r := newRig(t)
	r.o.TrustProject = true
	r.inProject("plugins/ours.js", says("ours", "one"))
	r.must(r.start())
	p, err := r.Place(r.ctx(), r.project)
	r.must(err)
	r.must(os.Remove(r.path("plugins/ours.js")))
	r.must(os.Symlink("/etc/hostname", r.path("plugins/ours.js"))) // it leads out
	r.must(r.Reload(r.ctx()))
	if got := r.answer(p.Scope(), "ours"); got != "one" {
		t.Error(got)
	}
	r.want("ours.js")
}

// TestLoads: the documents of --config and the plugin files that they name are known to
// the policy, by whatever name, also after an edit; what lies beside them is not.
func TestLoads(t *testing.T) {
	r := newRig(t)
	dev := filepath.Join(r.project, "dev.yml")
	r.write(dev, "- name: ./more.js\n- {id: part, name: include, config: {path: part.yml}}\n")
	r.write(filepath.Join(r.project, "part.yml"), "- name: ./lib\n")
	r.write(filepath.Join(r.project, "more.js"), says("more", "hello"))
	r.write(filepath.Join(r.project, "lib", "index.js"), says("lib", "hello"))
	link := filepath.Join(r.project, "link.yml")
	r.must(os.Symlink(dev, link))
	r.o.Sources.Config = []string{link}
	r.must(r.start())
	want := func(want bool, names ...string) {
		t.Helper()
		for _, name := range names {
			if r.Loads(filepath.Join(r.project, name)) != want {
				t.Errorf("%s: not %t", name, want)
			}
		}
	}
	want(true, "dev.yml", "more.js", "part.yml", "lib/index.js", "lib/new.js")
	want(false, "other.js", "library.js", "new.js")
	r.write(filepath.Join(r.project, "new.js"), says("new", "hello"))
	r.write(dev, "- name: ./new.js\n")
	r.must(r.Reload(r.ctx()))
	want(true, "dev.yml", "new.js")
	want(false, "more.js", "part.yml")
}
