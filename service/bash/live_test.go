package bash_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/service/bash"
)

// heard collects what a command writes.
type heard struct {
	mu    sync.Mutex
	text  strings.Builder
	first chan struct{} // closed at the first piece
}

func newHeard() *heard { return &heard{first: make(chan struct{})} }

func (h *heard) hear(b []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.text.Len() == 0 {
		close(h.first)
	}
	h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func TestLiveOutput(t *testing.T) {
	for name, c := range map[string]struct{ command, want string }{
		"both-streams":      {"echo a; sleep 0.05; echo b >&2; sleep 0.05; printf c", "a\nb\nc"},
		"torn-character":    {`printf '\xe2\x82'; sleep 0.05; printf '\xac'`, "€"},
		"unfinished-at-end": {`printf 'x\xe2\x82'`, "x\xe2\x82"},
		"nothing":           {"true", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, bash.Config{})
			b, _ := bash.Service.Get(r.root)
			h := newHeard()
			got := must(b.Run(bash.WithLive(within(t, time.Minute), h.hear), r.root, line(c.command)))(t)
			exitCode(t, got, 0)
			if h.String() != c.want {
				t.Errorf("heard %q, want %q", h.String(), c.want)
			}
		})
	}
}

// TestLiveWhileItRuns: the first piece is heard before the command ends, and what
// was heard is read as news too.
func TestLiveWhileItRuns(t *testing.T) {
	r := newRig(t, bash.Config{})
	b, _ := bash.Service.Get(r.root)
	h := newHeard()
	ctx := within(t, time.Minute)
	p := must(b.Start(bash.WithLive(ctx, h.hear), r.root, line("echo up; sleep 300")))(t)
	select {
	case <-h.first:
	case <-ctx.Done():
		t.Fatal("nothing was heard")
	}
	if p.Status() != bash.Running {
		t.Errorf("it is %s", p.Status())
	}
	if o := must(p.ReadOutput())(t); o.Delta != "up\n" || h.String() != "up\n" {
		t.Errorf("read %q, heard %q", o.Delta, h.String())
	}
	_, _ = p.Kill()
	must(p.Done()(ctx))(t)
}
