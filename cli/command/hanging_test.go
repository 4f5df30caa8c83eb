package command

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

// TestStopNames: what does not end is named in one sentence, by what a person knows.
func TestStopNames(t *testing.T) {
	const told = "dsh: this did not end when it was told to, and is killed with dsh: "
	for _, tt := range []struct {
		name   string
		labels []string
		want   string
	}{
		{"ends", nil, ""},
		{"plugin", []string{"x"}, told + "the plugin dyn-1\n"},
		{"command", []string{`bash.start("sleep 9")`, `bash.run("a (b)")`}, told + "the command \"a (b)\", the command \"sleep 9\"\n"},
		{"many", []string{`bash.run("a")`, `bash.run("b")`, `bash.run("c")`, `bash.run("d")`, `bash.run("d")`},
			told + "the command \"a\", the command \"b\", the command \"c\", 1 more\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := cordis.New()
			begun, release := make(chan struct{}, 8), make(chan struct{})
			f, err := tool.WithMount(root, tool.Mount{Number: 1, ID: "dyn-1", Plugin: "p"}).Mount(&cordis.Plugin{Name: "p", Apply: func(c *cordis.Context, _ any) error {
				for _, label := range tt.labels {
					if _, err := c.Defer(label, func(context.Context) error { begun <- struct{}{}; <-release; return nil }); err != nil {
						return fmt.Errorf("hang: %w", err)
					}
				}
				return nil
			}}, nil)
			if err == nil {
				err = f.Await(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			by := time.Now().Add(time.Minute)
			if tt.want != "" {
				f.RequestDispose()
				<-begun
				by = time.Now()
			}
			var messages bytes.Buffer
			StopBy(root, &messages, by)
			close(release)
			if diff := cmp.Diff(tt.want, messages.String()); diff != "" {
				t.Error(diff)
			}
			if _, err := root.Fiber().Dispose(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
