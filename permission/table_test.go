package permission_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// TestTable: the table of the package comment, act by act and mode by mode, by the
// tool of the composition and by a mounted plugin, over the real services.
func TestTable(t *testing.T) {
	type row struct {
		name, do, arg string
		by            map[permission.Mode]string // allow, ask, deny
	}
	everywhere := func(ask, auto, full, readOnly string) map[permission.Mode]string {
		return map[permission.Mode]string{permission.Ask: ask, permission.AutoEdit: auto, permission.Full: full, permission.ReadOnly: readOnly}
	}
	rows := func(r *rig) []row {
		return []row{
			{"read", "read", "a.txt", everywhere("allow", "allow", "allow", "allow")},
			{"write", "write", "new.txt", everywhere("ask", "allow", "allow", "deny")},
			{"write-over", "write", "a.txt", everywhere("ask", "allow", "allow", "deny")},
			{"edit", "edit", "e.txt", everywhere("ask", "allow", "allow", "deny")},
			{"remove", "remove", "gone", everywhere("ask", "allow", "allow", "deny")},
			{"mkdir", "mkdir", "made", everywhere("ask", "allow", "allow", "deny")},
			{"git-settings", "write", ".git/config", everywhere("ask", "ask", "allow", "deny")},
			{"git-elsewhere", "write", "sub/HEAD", everywhere("ask", "ask", "allow", "deny")},
			{"bash-that-reads", "bash", "cat a.txt | head -n 1", everywhere("allow", "allow", "allow", "allow")},
			{"bash", "bash", "touch t", everywhere("ask", "ask", "allow", "deny")},
			{"bash-redirect", "bash", "echo x > t", everywhere("ask", "ask", "allow", "deny")},
			{"fetch", "fetch", r.url + "/p", everywhere("ask", "ask", "allow", "ask")},
			{"search", "search", "words", everywhere("ask", "ask", "allow", "ask")},
		}
	}
	for _, mode := range permission.Modes() {
		for _, mounted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/mounted=%v", mode, mounted), func(t *testing.T) {
				r := newRig(t, permission.Config{})
				if mounted {
					r.mounted(plugin("p")) // before the binding, for read-only: without one everything is allowed
				}
				// Calls of the mounted tools are acts of their own, which are allowed here.
				rules, err := permission.ParseRules([]string{"tool(p_*)"})
				if err != nil {
					t.Fatal(err)
				}
				r.bind(permission.Binding{Mode: mode, Allow: rules}, false)
				for _, row := range rows(r) {
					t.Run(row.name, func(t *testing.T) {
						r.write("e.txt", "old")
						r.write("gone/x", "x")
						if err := os.RemoveAll(filepath.Join(r.dir, "made")); err != nil {
							t.Fatal(err)
						}
						do := func() *tool.Result { return r.act(row.do, row.arg) }
						if mounted {
							do = func() *tool.Result { return r.call("p_"+row.do, map[string]string{"arg": row.arg}) }
						}
						want := row.by[mode]
						if mounted && mode == permission.ReadOnly {
							// The call itself is refused, whatever it would do.
							if res := do(); !res.IsError || !strings.Contains(selfmodtest.Text(res), "read-only") || len(r.asked()) > 0 {
								t.Fatalf("got %s", selfmodtest.Text(res))
							}
							return
						}
						res := do()
						got := "allow"
						if len(r.asked()) > 0 {
							got = "ask"
							if !res.IsError || !strings.Contains(selfmodtest.Text(res), "the user denied it") {
								t.Errorf("after a no: %s", selfmodtest.Text(res))
							}
						} else if res.IsError && strings.Contains(selfmodtest.Text(res), "denied") {
							got = "deny"
						} else if res.IsError && row.do != "search" { // there is no provider
							t.Errorf("it failed: %s", selfmodtest.Text(res))
						}
						if got != want {
							t.Errorf("got %s, want %s: %s", got, want, selfmodtest.Text(res))
						}
						if want != "ask" {
							return
						}
						r.answers(permission.Answer{Allow: true})
						if res := do(); res.IsError && row.do != "search" {
							t.Errorf("after a yes: %s", selfmodtest.Text(res))
						}
						if len(r.asked()) != 1 {
							t.Error("an answer for once was remembered")
						}
						r.answers(permission.Answer{})
					})
				}
			})
		}
	}
}

// TestTableOfMounts: mounting and mounted tools.
func TestTableOfMounts(t *testing.T) {
	for mode, want := range map[permission.Mode]string{permission.Ask: "ask", permission.AutoEdit: "ask", permission.Full: "allow", permission.ReadOnly: "deny"} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t, permission.Config{})
			r.mounted(plugin("before"))
			r.bind(permission.Binding{Mode: mode}, false)
			for _, what := range []string{"cordis_mount", "before_read"} {
				args := map[string]string{"code": plugin("q"), "arg": "a.txt"}
				delete(args, map[bool]string{true: "arg", false: "code"}[what == "cordis_mount"])
				res := r.call(what, args)
				got := "allow"
				if n := len(r.asked()); n > 0 {
					got = "ask"
				} else if res.IsError {
					got = "deny"
				}
				if got != want {
					t.Errorf("%s: got %s, want %s: %s", what, got, want, selfmodtest.Text(res))
				}
			}
			for what, args := range map[string]map[string]string{"cordis_inspect": {"what": "temporary"}, "cordis_unmount": {"id": "dyn-1"}} {
				if res := r.call(what, args); res.IsError || len(r.asked()) > 0 {
					t.Errorf("%s: %s", what, selfmodtest.Text(res))
				}
			}
		})
	}
}
