package permission_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/tool"
)

// TestDescribe: what a model reads of its policy, mode by mode.
func TestDescribe(t *testing.T) {
	const (
		readOnlyRuns = "reading and commands that only read run; "
		rest         = "edits, fetches, mounts, mounted tools and other commands "
		edits        = "reading, commands that only read, and edits below the working folder but for .git and .dsh run; other edits, fetches, mounts, mounted tools and other commands "
	)
	for _, c := range []struct {
		mode        permission.Mode
		headless    bool
		allow, deny string
		want        string
	}{
		{permission.Ask, true, "", "", "Permission: ask, and nobody can be asked: " + readOnlyRuns + rest + "are denied."},
		{permission.Ask, false, "", "", "Permission: ask: " + readOnlyRuns + rest + "wait for the person's approval."},
		{permission.Ask, true, "bash(go test *);edit(src/**)", "read(.env)", "Permission: ask, and nobody can be asked: " + readOnlyRuns + rest + "are denied. Allowed besides: bash(go test *), edit(src/**). Denied in any case: read(.env)."},
		{permission.AutoEdit, true, "", "", "Permission: auto-edit, and nobody can be asked: " + edits + "are denied."},
		{permission.AutoEdit, false, "", "", "Permission: auto-edit: " + edits + "wait for the person's approval."},
		{permission.Full, true, "bash", "", "Permission: full: everything runs without a question."},
		{permission.Full, false, "", "bash(rm *)", "Permission: full: everything runs without a question. Denied in any case: bash(rm *)."},
		{permission.ReadOnly, true, "fetch", "", "Permission: read-only, and nobody can be asked: " + readOnlyRuns + "fetches are denied; whatever changes something is denied. Allowed besides, where nothing is changed: fetch."},
		{permission.ReadOnly, false, "", "", "Permission: read-only: " + readOnlyRuns + "fetches wait for the person's approval; whatever changes something is denied."},
	} {
		t.Run(fmt.Sprintf("%s/headless=%t/%s%s", c.mode, c.headless, c.allow, c.deny), func(t *testing.T) {
			r := newRig(t, permission.Config{})
			b := permission.Binding{Mode: c.mode}
			if c.allow != "" {
				b.Allow = parse(t, strings.Split(c.allow, ";")...)
			}
			if c.deny != "" {
				b.Deny = parse(t, c.deny)
			}
			r.bind(b, c.headless)
			for _, scope := range []*tool.Scope{r.scope, tool.NewScope("below", r.scope)} {
				if got := r.policy.Describe(scope); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
			}
		})
	}
}

// TestDescribeBounded: however many rules there are, some are named.
func TestDescribeBounded(t *testing.T) {
	r := newRig(t, permission.Config{})
	var rules []string
	for i := range 50 {
		rules = append(rules, fmt.Sprintf("bash(run%02d %s)", i, strings.Repeat("x", 500)))
	}
	r.bind(permission.Binding{Allow: parse(t, rules...)}, true)
	got := r.policy.Describe(r.scope)
	if len(got) > 4000 || !strings.HasSuffix(got, ", and 30 more.") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if err := r.policy.SetMode(r.scope, permission.ReadOnly, "user"); err != nil {
		t.Fatal(err)
	}
	if got := r.policy.Describe(r.scope); !strings.HasPrefix(got, "Permission: read-only, and nobody can be asked") {
		t.Errorf("after a change: %s", got)
	}
}
