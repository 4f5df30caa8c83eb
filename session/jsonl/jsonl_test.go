package jsonl

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/sessiontest"
)

func TestStore(t *testing.T) {
	open := func(t *testing.T, root string) session.Store {
		t.Helper()
		s, err := New(root)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sessiontest.Run(t, sessiontest.Kind{
		New:   func(t *testing.T) session.Store { return open(t, t.TempDir()+"/home/sessions") },
		Again: func(t *testing.T, s session.Store) session.Store { return open(t, s.(*Store).Root()) },
	})
}

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		if err := runChild(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
