package shell

import (
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// live shows the output of a running command as the progress of its call: pieces,
// each the end of what came since the one before.
type live struct {
	exec *tool.Exec

	mu    sync.Mutex
	piece []byte
	timer *time.Timer // armed while there is a piece
	over  bool
	shown sync.WaitGroup // armed timers
}

// hear takes output.
func (l *live) hear(output []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return
	}
	if most := limits.Progress * utf8.UTFMax; len(l.piece)+len(output) > most {
		l.piece = l.piece[max(0, min(len(l.piece), len(l.piece)+len(output)-most)):]
		output = output[max(0, len(output)-most):]
	}
	l.piece = append(l.piece, output...)
	if l.timer == nil {
		l.shown.Add(1)
		l.timer = time.AfterFunc(limits.ShellLive, l.show)
	}
}

func (l *live) show() {
	defer l.shown.Done()
	l.mu.Lock()
	text := strings.ToValidUTF8(string(l.piece), "\uFFFD")
	l.piece, l.timer = l.piece[:0], nil
	l.mu.Unlock()
	for over := utf8.RuneCountInString(text) - limits.Progress; over > 0; over-- {
		_, n := utf8.DecodeRuneInString(text)
		text = text[n:]
	}
	l.exec.Progress(tool.Progress{Text: text})
}

// end ends the showing, and waits for a piece that is being shown.
func (l *live) end() {
	l.mu.Lock()
	l.over = true
	if l.timer != nil && l.timer.Stop() {
		l.shown.Done()
	}
	l.mu.Unlock()
	l.shown.Wait()
}
