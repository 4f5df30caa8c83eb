package worker

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// bucket lets limits.ConsoleBurst lines through at once and
// limits.ConsoleRate a second after that. The zero bucket is full.
type bucket struct {
	taken   float64
	last    time.Time
	dropped int
	told    time.Time // when the last notice about dropped lines was given
}

// take reports whether one more may pass at now, and how many did not since the
// last notice, when one is due: at most one a second.
func (b *bucket) take(now time.Time) (ok bool, dropped int) {
	if !b.last.IsZero() {
		b.taken = max(0, b.taken-now.Sub(b.last).Seconds()*limits.ConsoleRate)
	}
	b.last = now
	if b.taken > limits.ConsoleBurst-1 {
		b.dropped++
		return false, 0
	}
	b.taken++
	if b.dropped > 0 && now.Sub(b.told) >= time.Second {
		dropped, b.dropped, b.told = b.dropped, 0, now
	}
	return true, dropped
}

// maxLevel bounds a level's name: the prelude's are short.
const maxLevel = 16

// print sends a line, unless the mount prints too much.
func (m *mount) print(level, text string) {
	ok, dropped := m.lines.take(time.Now())
	if dropped > 0 {
		m.w.send(wire.Frame{Kind: wire.Console, Mount: m.id, Run: m.top.run, Name: "warn",
			Payload: fmt.Appendf(nil, "%d lines dropped: %s prints more than %d lines a second", dropped, m.label, limits.ConsoleRate)})
	}
	if ok {
		text = m.positions.Printed(cut(text, limits.ConsoleLineBytes))
		m.w.send(wire.Frame{Kind: wire.Console, Mount: m.id, Run: m.top.run, Name: cut(level, maxLevel), Payload: []byte(text)})
	}
}

// cut returns at most n bytes of s, in whole characters, and marks the cut.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + mark
}
