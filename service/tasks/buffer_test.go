package tasks

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
)

func TestBufferLoses(t *testing.T) {
	b := &buffer{}
	for range 5 {
		_, _ = b.Write(bytes.Repeat([]byte("0123456789"), limits.TaskOutput/10))
	}
	text, more, lost := b.take(nil)
	if len(text) != limits.TaskRead || more != limits.TaskOutput-limits.TaskRead || lost != 4*limits.TaskOutput {
		t.Errorf("%d bytes, %d more, %d lost", len(text), more, lost)
	}
	n := len(text)
	for more > 0 {
		if text, more, lost = b.take(nil); lost != 0 {
			t.Errorf("%d lost", lost)
		}
		n += len(text)
	}
	if n != limits.TaskOutput {
		t.Errorf("%d bytes were read", n)
	}
	if cap(b.kept) > 4*limits.TaskOutput {
		t.Errorf("it keeps %d bytes", cap(b.kept))
	}
}

func TestBufferCharacters(t *testing.T) {
	b := &buffer{}
	_, _ = b.Write([]byte("a\xe2\x82"))
	if text, more, _ := b.take(nil); text != "a" || more != 0 {
		t.Errorf("%q, %d more", text, more)
	}
	_, _ = b.Write([]byte("\xac\xe2"))
	if text, _, _ := b.take(nil); text != "€" {
		t.Errorf("%q", text)
	}
	b.close()
	_, _ = b.Write([]byte("late"))
	if text, _, _ := b.take(nil); text != "\uFFFD" {
		t.Errorf("%q", text)
	}
}

func TestBufferReaders(t *testing.T) {
	b := &buffer{}
	_, _ = b.Write([]byte("x"))
	b.take(nil)
	for range 3 * limits.TaskReaders {
		if text, _, _ := b.take(new(cordis.Fiber)); text != "x" {
			t.Fatalf("%q", text)
		}
	}
	if len(b.read) > limits.TaskReaders {
		t.Errorf("%d readers are remembered", len(b.read))
	}
	if text, _, _ := b.take(nil); text != "" {
		t.Errorf("the program reads %q again", text)
	}
}

// TestBufferProperties: what is read is what was written, whatever the pieces.
func TestBufferProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &buffer{}
		var wrote, read strings.Builder
		for _, piece := range rapid.SliceOf(rapid.String()).Draw(t, "pieces") {
			cut := rapid.IntRange(0, len(piece)).Draw(t, "cut")
			for _, p := range []string{piece[:cut], piece[cut:]} {
				_, _ = b.Write([]byte(p))
				if rapid.Bool().Draw(t, "look") {
					text, _, _ := b.take(nil)
					if !utf8.ValidString(text) {
						t.Fatalf("read %q", text)
					}
					read.WriteString(text)
				}
			}
			wrote.WriteString(piece)
		}
		b.close()
		text, more, lost := b.take(nil)
		read.WriteString(text)
		if read.String() != wrote.String() || more != 0 || lost != 0 {
			t.Fatalf("read %q of %q, %d more, %d lost", read.String(), wrote.String(), more, lost)
		}
	})
}

func BenchmarkBufferWrite(b *testing.B) {
	out, line := &buffer{}, bytes.Repeat([]byte("x"), 4096)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = out.Write(line)
	}
}
