//go:build linux

package relay

import (
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is how long a test waits for what must come.
const long = 10 * time.Second

// pipe is a Relay over the reading end of a pipe, read with blocking calls.
func pipe(t testing.TB) (*Relay, *os.File, *os.File) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = out.Close() })
	r := New(out)
	if r == nil {
		t.Fatal("no Relay for a pipe")
	}
	t.Cleanup(r.Close)
	return r, out, in
}

// standby starts one and returns what Standby will report.
func standby(t testing.TB, r *Relay) <-chan bool {
	t.Helper()
	done := make(chan bool, 1)
	go func() { done <- r.Standby() }()
	for { // until it sleeps
		r.mu.Lock()
		there := r.standby
		r.mu.Unlock()
		if there {
			return done
		}
		time.Sleep(time.Millisecond)
	}
}

func must(t testing.TB, done <-chan bool, want bool) {
	t.Helper()
	select {
	case got := <-done:
		if got != want {
			t.Errorf("Standby reports %t", got)
		}
	case <-time.After(long):
		t.Fatal("Standby does not return")
	}
}

func write(t testing.TB, in *os.File) {
	t.Helper()
	if _, err := in.WriteString("x"); err != nil {
		t.Fatal(err)
	}
}

// Without a standby nobody may leave; a second standby is none.
func TestNeedsStandby(t *testing.T) {
	t.Parallel()
	r, _, _ := pipe(t)
	if r.Leave() || r.Back() {
		t.Error("a reader left that nobody stands in for")
	}
	done := standby(t, r)
	if r.Standby() {
		t.Error("there are two standbys")
	}
	if !r.Leave() {
		t.Error("the reader could not leave")
	}
	if r.Leave() {
		t.Error("it left twice")
	}
	if !r.Back() || r.Back() {
		t.Error("it did not come back once")
	}
	r.Close()
	must(t, done, false)
	if r.Leave() || r.Standby() {
		t.Error("a closed Relay goes on")
	}
}

// The standby takes over exactly when something can be read while the reader is
// away, also if it could before.
func TestTakesOver(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{false, true} {
		r, out, in := pipe(t)
		done := standby(t, r)
		for range 100 { // nothing to read: it comes back
			if !r.Leave() || !r.Back() {
				t.Fatal("the reader did not come back")
			}
		}
		if before {
			write(t, in)
		}
		if !r.Leave() {
			t.Fatal("the reader could not leave")
		}
		if !before {
			write(t, in)
		}
		must(t, done, true)
		if r.Back() {
			t.Error("both read")
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
}

// What can be read while the reader is there wakes nobody, and the end of the
// pipe counts as something to read.
func TestStaysAsleep(t *testing.T) {
	t.Parallel()
	r, out, in := pipe(t)
	done := standby(t, r)
	for range 100 {
		if !r.Leave() || !r.Back() {
			t.Fatal("the reader did not come back")
		}
		write(t, in)
		if !r.Wait(long) {
			t.Fatal("nothing can be read")
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
		t.Fatal("the standby woke")
	default:
	}
	if !r.Leave() {
		t.Fatal("the reader could not leave")
	}
	_ = in.Close()
	must(t, done, true)
}

func TestWait(t *testing.T) {
	t.Parallel()
	r, _, in := pipe(t)
	began := time.Now()
	if r.Wait(20 * time.Millisecond) {
		t.Error("something can be read")
	}
	if took := time.Since(began); took < 15*time.Millisecond {
		t.Logf("it was woken after %v", took) // by a signal: the caller looks at its clock
	}
	r.Wake()
	r.Wake()
	if r.Wait(long) {
		t.Error("a Wake is something to read")
	}
	woke := make(chan bool, 1)
	go func() { woke <- r.Wait(long) }()
	r.Wake()
	if <-woke {
		t.Error("a Wake is something to read")
	}
	write(t, in)
	for !r.Wait(long) { // a signal may come first
	}
}

// Two goroutines relieve each other, whatever comes when; nothing is lost and
// nothing is read twice at one time.
func TestRelieve(t *testing.T) {
	t.Parallel()
	r, out, in := pipe(t)
	const total = 2000
	var reading sync.Mutex
	read := 0
	var both sync.WaitGroup
	loop := func(first bool) {
		b := make([]byte, 1)
		for first || r.Standby() {
			first = false
			for {
				if !reading.TryLock() {
					t.Error("both read")
					return
				}
				_, err := out.Read(b)
				read++
				n := read
				reading.Unlock()
				if err != nil || n == total {
					r.Close()
					return
				}
				if r.Leave() {
					if n%3 == 0 {
						time.Sleep(time.Duration(n%5) * 10 * time.Microsecond)
					}
					if !r.Back() {
						break
					}
				}
			}
		}
	}
	both.Go(func() { loop(true) })
	both.Go(func() { loop(false) })
	for i := range total {
		write(t, in)
		if i%7 == 0 {
			time.Sleep(20 * time.Microsecond)
		}
	}
	both.Wait()
}
