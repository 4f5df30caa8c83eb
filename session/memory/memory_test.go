package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/sessiontest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStore(t *testing.T) {
	sessiontest.Run(t, sessiontest.Kind{
		New: func(*testing.T) session.Store { return memory.New() },
		Crash: func(_ *testing.T, store session.Store, s *session.Session) {
			store.(*memory.Store).Crash(s.Meta().ID)
		},
	})
}
