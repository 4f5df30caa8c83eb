package selfmodtest

import "time"

// Eventually waits until done says so; it fails the test with the last answer
// after [Wait]. It is for state that no event tells of.
func (r *Rig) Eventually(what string, done func() (now string, ok bool)) {
	r.T.Helper()
	deadline := time.Now().Add(Wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		now, ok := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			r.T.Fatalf("%s did not come true within %v; last:\n%s", what, Wait, now)
		}
		time.Sleep(pause)
	}
}
