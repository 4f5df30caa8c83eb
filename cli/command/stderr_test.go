package command

import (
	"io"
	"strings"
	"testing"
)

// TestLossyWriterNeverWaits: nobody reads, and writing goes on; what is read
// later says how much was dropped.
func TestLossyWriterNeverWaits(t *testing.T) {
	read, write := io.Pipe()
	w := NewLossyWriter(write)
	const lines = 3 * waitingWrites
	for range lines {
		if n, err := io.WriteString(w, "line\n"); n != 5 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	seen := make(chan string)
	go func() {
		text, _ := io.ReadAll(read)
		seen <- string(text)
	}()
	for len(w.writes) > waitingWrites/2 { // until there is room
		_, _ = io.WriteString(w, "")
	}
	_, _ = io.WriteString(w, "last\n")
	_ = w.Close()
	<-w.done
	_ = write.Close()
	text := <-seen
	if !strings.Contains(text, "messages dropped") || !strings.HasSuffix(text, "last\n") {
		t.Errorf("read %d bytes that end with %q", len(text), text[max(0, len(text)-80):])
	}
}
