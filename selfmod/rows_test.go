package selfmod_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/golden"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// composed is a composition as inspect sees one.
type composed struct {
	rows    []loader.RowInfo
	notices []string
}

func (c composed) Rows(*tool.Scope) []loader.RowInfo { return c.rows }
func (c composed) Notices(*tool.Scope) []string      { return c.notices }

func provideComposition(r *selfmodtest.Rig, c composed) {
	r.T.Helper()
	f, err := r.Root.Mount(&cordis.Plugin{Name: "composition", Apply: func(ctx *cordis.Context, _ any) error {
		_, err := loader.Service.Provide(ctx, loader.Composition(c))
		return err
	}}, nil)
	if err == nil {
		err = f.Await(r.Context())
	}
	if err != nil {
		r.T.Fatal(err)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	provideComposition(r, composed{
		rows: []loader.RowInfo{
			{ID: "fs", Name: "fs", State: "running", Layer: "built-in", Line: 3},
			{ID: "tools", Name: "group", State: "group", Layer: "built-in", Line: 5},
			{ID: "web", Name: "web", State: "disabled", Layer: "~/.dsh/cordis.yml", Line: 2},
			{ID: "greet", Name: "./plugins/greet.js", State: "skipped", Reason: "plugin file ./plugins/greet.js failed to parse:\nunexpected }", Layer: ".dsh/cordis.yml", Line: 12},
			{ID: "waits", Name: "./plugins/waits.js", State: "pending", Waiting: []string{"greeter"}, Layer: ".dsh/cordis.yml", Line: 14},
			{ID: "policy", Name: "./plugins/policy.js", State: "failed", Reason: "no luck", Guards: []string{"bash", "write"}, Withheld: true, Layer: ".dsh/plugins"},
			{ID: "# forged\n- row", Name: "`x`", State: "running", Later: true, Guards: []string{"all"}},
		},
		notices: []string{"the last edit of .dsh/cordis.yml was refused: row x"},
	})
	golden.Compare(t, "rows.md", r.Inspect("plugins", "")+"\n")
	golden.Compare(t, "row.md", r.Inspect("plugins", "policy")+"\n"+r.Inspect("plugins", "./plugins/greet.js")+"\n")
	r.Fails(r.Call("cordis_unmount", `{"id":"greet"}`), "greet is a row of the composition, ./plugins/greet.js (.dsh/cordis.yml:12), and no temporary Plugin: cordis_unmount cannot remove it")
	r.Fails(r.Call("cordis_inspect", `{"what":"plugins","name":"greed"}`), `there is no plugin file or row "greed"; did you mean "greet"?`)
}

// TestRowsBounded: many rows with much to say do not pass the report's bounds.
func TestRowsBounded(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	var c composed
	for n := range 2000 {
		c.rows = append(c.rows, loader.RowInfo{ID: fmt.Sprintf("row-%d", n), Name: strings.Repeat("n", 500), State: "failed", Reason: strings.Repeat("r", 5000), Layer: strings.Repeat("l", 500)})
		c.notices = append(c.notices, strings.Repeat("x", 9000))
	}
	provideComposition(r, c)
	for _, what := range []string{"plugins", ""} {
		report := r.Inspect(what, "")
		if n := len([]rune(report)); n > limits.ReportAll {
			t.Errorf("%q has %d characters", what, n)
		}
		if !strings.Contains(report, "(cut: ") || !strings.Contains(report, "(and 1995 more)") {
			t.Errorf("%q does not say that it was cut", what)
		}
	}
}
