package jsonl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// childEnv makes the test binary a process that appends until it is killed, or
// one that holds a session until its input ends.
const childEnv = "DSH_SESSION_TEST_CHILD"

func runChild(mode string) error {
	ctx := context.Background()
	s, err := New(os.Args[len(os.Args)-1])
	if err != nil {
		return err
	}
	w, err := s.Open(ctx, "one")
	if errors.Is(err, session.ErrNotFound) {
		w, err = s.Create(ctx, session.Meta{ID: "one"})
	}
	if err != nil {
		return err
	}
	if mode == "hold" {
		fmt.Println("holding")
		_, err = bufio.NewReader(os.Stdin).ReadString('\n')
		return errors.Join(err, w.Close(ctx))
	}
	for turn := w.Turn().Turn + 1; ; turn++ {
		if err := playTurn(ctx, w, turn); err != nil {
			return err
		}
	}
}

// playTurn appends a turn as a loop does, with a checkpoint wherever one belongs,
// and tells of each when it has returned.
func playTurn(ctx context.Context, w *session.Session, turn int) error {
	var blocks []message.Block
	for i := range 3 {
		blocks = append(blocks, sessiontest.CallBlock(fmt.Sprintf("c%d-%d", turn, i), "echo", strings.Repeat("x", 500)))
	}
	batches := [][]session.Payload{
		{session.TurnStart{Turn: turn}, session.StepStart{Turn: turn, Step: 1}, sessiontest.User("u", "Do it.")},
		{sessiontest.Chunk(turn, 1, "yes"), sessiontest.Answer(turn, 1, "a", "yes", blocks...)},
	}
	for _, b := range blocks {
		batches = append(batches, []session.Payload{sessiontest.Call(turn, 1, b)}, []session.Payload{sessiontest.Result(turn, 1, b.ID, "done")})
	}
	batches = append(batches, []session.Payload{session.StepEnd{Turn: turn, Step: 1}, session.TurnEnd{Turn: turn, Reason: session.EndReason{Kind: session.EndCompleted}}})
	for _, batch := range batches {
		events, err := w.Append(batch...)
		if err != nil {
			return err
		}
		if err := w.Checkpoint(ctx); err != nil {
			return err
		}
		last := events[len(events)-1]
		if _, err := fmt.Printf("%d %s\n", last.Seq, last.Line()); err != nil {
			return err
		}
	}
	return nil
}

func child(t *testing.T, mode, root string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$", root)
	cmd.Env = append(os.Environ(), childEnv+"="+mode)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestKill kills a process that appends, at random times, again and again. What a
// checkpoint returned for is there in the next life, byte for byte, and every
// call has exactly one result.
func TestKill(t *testing.T) {
	rounds := 15
	if testing.Short() {
		rounds = 3
	}
	s := newStore(t)
	acknowledged := map[int64]string{}
	for round := range rounds {
		cmd := child(t, "append", s.Root())
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		after := rand.IntN(40)
		lines := bufio.NewReader(out)
		for n := 0; ; n++ {
			text, err := lines.ReadString('\n')
			if err != nil {
				break // the end of what it said before it died
			}
			number, line, _ := strings.Cut(strings.TrimSuffix(text, "\n"), " ")
			seq, err := strconv.ParseInt(number, 10, 64)
			must(t, err)
			acknowledged[seq] = line
			if n == after {
				time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("round %d: the child was not killed: %v", round, err)
		}
		w, err := s.Open(t.Context(), "one")
		must(t, err)
		checkKilled(t, w, acknowledged)
		must(t, w.Close(t.Context()))
	}
	t.Logf("%d acknowledged batches", len(acknowledged))
}

func checkKilled(t *testing.T, w *session.Session, acknowledged map[int64]string) {
	t.Helper()
	events := w.Events(0)
	for seq, line := range acknowledged {
		if seq >= int64(len(events)) || events[seq].Line() != line {
			t.Fatalf("event %d of %d was acknowledged and is lost: %s", seq, len(events), line)
		}
	}
	results := map[string]int{}
	for _, e := range events {
		p, err := e.Payload()
		must(t, err)
		switch p := p.(type) {
		case session.AssistantMessage:
			for _, b := range p.Message.Calls() {
				results[b.ID] += 0
			}
		case session.Result:
			results[p.Message.Source.CallID]++
		}
	}
	for id, n := range results {
		if n != 1 {
			t.Fatalf("call %s has %d results", id, n)
		}
	}
}

// TestOtherProcess: the refusal names the process that has the session, and its
// death frees it.
func TestOtherProcess(t *testing.T) {
	s := newStore(t)
	stored(t, s, "one", 1)
	cmd := child(t, "hold", s.Root())
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_, err = s.Open(t.Context(), "one")
	var held *session.LockedError
	if !errors.As(err, &held) || held.PID != cmd.Process.Pid || time.Since(held.Since) > time.Minute {
		t.Errorf("got %v, want process %d", err, cmd.Process.Pid)
	}
	if _, err := s.Read(t.Context(), "one"); err != nil {
		t.Errorf("a reader needs no lock: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_ = in.Close()
	w, err := s.Open(t.Context(), "one")
	must(t, err)
	must(t, w.Close(t.Context()))
}

// TestLockOfTheDead: the lock of a process that was killed while it started another
// stays for a moment with that one; it is waited for. That of the living is not.
func TestLockOfTheDead(t *testing.T) {
	s := newStore(t)
	w, err := s.Create(t.Context(), session.Meta{ID: "one"})
	must(t, err)
	_, err = w.Append(sessiontest.Turn(1)...)
	must(t, err)
	must(t, w.Close(t.Context()))
	dead := exec.Command(os.Args[0], "-test.run=^$")
	must(t, dead.Run())
	f, err := os.OpenFile(s.Root()+"/one/"+lockName, os.O_RDWR, 0)
	must(t, err)
	must(t, atomicfile.TryLock(f))
	for _, opens := range []bool{false, true} {
		pid := os.Getpid()
		if opens {
			pid = dead.Process.Pid
		}
		must(t, f.Truncate(0))
		_, err = f.WriteAt([]byte(fmt.Sprintf(`{"pid":%d}`, pid)), 0)
		must(t, err)
		if opens {
			time.AfterFunc(50*time.Millisecond, func() { _ = f.Close() })
		}
		w, err := s.Open(t.Context(), "one")
		if opens {
			must(t, err)
			must(t, w.Close(t.Context()))
		} else if !errors.Is(err, session.ErrLocked) {
			t.Errorf("of the living: %v", err)
		}
	}
}
