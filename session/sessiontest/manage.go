package sessiontest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

func (s *suite) fork() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	first := w.Len()
	s.append(w, session.InboxSplice{Target: session.NextTurn, Inserted: []message.Message{User("q1", "later").Message}})
	s.append(w, session.Preset{AgentPreset: "reviewer"})
	s.append(w, Turn(2)...)
	lines := Lines(w.Events(0))
	s.close(w)
	for _, c := range []struct {
		id string
		at int64
		n  int64
	}{{"all", -1, int64(len(lines))}, {"last", int64(len(lines)) - 1, int64(len(lines))}, {"first", first - 1, first}} {
		meta, err := s.again().Fork(s.ctx, "one", c.at, c.id)
		s.ok(err)
		s.same([]any{meta.ParentSession, meta.SeedLength, meta.Cwd, meta.ID}, []any{"one", c.n, "/home/someone", c.id})
		s.same(s.read(c.id), lines[:c.n])
		f := s.open(c.id)
		s.same(f.Meta(), meta)
		s.same(f.FirstLive(), c.n+1)
		s.same(len(f.Inbox(session.NextTurn)), 0)
		s.append(f, session.InboxSplice{Target: session.NextTurn, Inserted: []message.Message{User("q1", "mine").Message}})
		s.append(f, Turn(f.Turn().Turn + 1)[:1]...)
		s.close(f)
	}
	s.same(s.read("one"), lines)
	l, err := s.again().Read(s.ctx, "all")
	s.ok(err)
	s.same(l.Preset(), "reviewer")
	meta, err := s.again().Fork(s.ctx, "all", -1, "grandchild")
	s.ok(err)
	s.same(meta.ParentSession, "all")
}

func (s *suite) forkRefuses() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	s.append(w, Turn(2)...)
	n := w.Len()
	events := w.Events(0)
	s.close(w)
	for at, e := range events {
		_, err := s.store.Fork(s.ctx, "one", int64(at), fmt.Sprintf("f%d", at))
		if e.Type == session.TypeTurnEnd {
			s.ok(err)
			continue
		}
		s.is(err, session.ErrOpenTurn)
	}
	for _, at := range []int64{n, n + 10, -2} {
		_, err := s.store.Fork(s.ctx, "one", at, "beyond")
		s.is(err, session.ErrBoundary)
	}
	_, err := s.store.Fork(s.ctx, "one", -1, "one")
	s.is(err, session.ErrExists)
	_, err = s.store.Fork(s.ctx, "none", -1, "two")
	s.is(err, session.ErrNotFound)
	for _, id := range []string{"f0", "beyond", "two"} {
		_, err = s.store.Read(s.ctx, id)
		s.is(err, session.ErrNotFound)
	}
}

func (s *suite) forkLive() {
	w := s.create("one")
	s.append(w, Open(1, "c1")...)
	s.ok(w.Checkpoint(s.ctx))
	_, err := s.again().Fork(s.ctx, "one", -1, "two") // repaired in the fork
	s.ok(err)
	f := s.open("two")
	counts, _, err := results(f.Log)
	s.ok(err)
	s.same(counts, map[string]int{"c1": 1})
	s.close(f)
	s.append(w, Call(1, 1, CallBlock("c1", "echo", `{"text":"c1"}`)), Result(1, 1, "c1", "said"))
	s.close(w)
}

func (s *suite) attachments() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	data := []byte("\x89PNG pretends")
	a, err := w.Attach("image/png", "shot.png", data)
	s.ok(err)
	b, err := w.Attach("image/png", "other.png", data)
	s.ok(err)
	s.same(a.Hash, b.Hash)
	image := User("u2", "")
	image.Message.Content = []message.Block{{Type: message.ImageBlock, Attachment: &a}}
	s.append(w, image)
	ghost := a
	ghost.Hash = strings.Repeat("0", 64)
	image.Message.Content = []message.Block{{Type: message.ImageBlock, Attachment: &ghost}}
	_, err = w.Append(image)
	s.is(err, session.ErrNotFound)
	_, err = w.Attachment(ghost.Hash)
	s.is(err, session.ErrNotFound)
	_, err = w.Attach("image/png", "", make([]byte, limits.SessionAttachment+1))
	s.is(err, session.ErrFull)
	s.close(w)
	_, err = w.Attach("image/png", "", data)
	s.is(err, session.ErrClosed)

	_, err = s.again().Fork(s.ctx, "one", -1, "two")
	s.ok(err)
	s.ok(s.again().Delete(s.ctx, "one"))
	got, err := s.again().Attachment(s.ctx, "two", a.Hash)
	s.ok(err)
	s.same(got, data)
	w = s.open("two")
	got, err = w.Attachment(a.Hash)
	s.ok(err)
	s.same(got, data)
	s.close(w)
	for _, hash := range []string{ghost.Hash, "", "../log.jsonl", "A"} {
		_, err = s.again().Attachment(s.ctx, "two", hash)
		s.is(err, session.ErrNotFound)
	}
	_, err = s.again().Attachment(s.ctx, "one", a.Hash)
	s.is(err, session.ErrNotFound)
}

func (s *suite) export() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	a, err := w.Attach("image/png", "", []byte("bytes"))
	s.ok(err)
	s.append(w, session.Title{Title: "A title"})
	meta, lines := w.Meta(), Lines(w.Events(0))
	s.close(w)
	var out bytes.Buffer
	s.ok(s.again().Export(s.ctx, "one", &out))
	attached := map[string]string{}
	l, kept, err := session.Decode(out.String(), func(a message.Attachment, data []byte) error {
		attached[a.Hash] = string(data)
		return nil
	})
	s.ok(err)
	s.same(kept, int64(out.Len()))
	s.same(l.Meta(), meta)
	s.same(Lines(l.Events(0)), lines)
	s.same(attached, map[string]string{a.Hash: "bytes"})
	s.is(s.again().Export(s.ctx, "none", &out), session.ErrNotFound)
	if err := s.again().Export(s.ctx, "one", failing{}); err == nil {
		s.Error("an error of the writer is lost")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no more") }

func (s *suite) list() {
	for i, id := range []string{"b", "a", "c"} {
		w, err := s.store.Create(s.ctx, session.Meta{ID: id, Cwd: "/home/" + id})
		s.ok(err)
		s.append(w, Turn(1)...)
		if i != 1 {
			s.append(w, session.Title{Title: "old"}, session.Title{Title: "title of " + id})
			s.append(w, Turn(2)...)
		}
		s.close(w)
		time.Sleep(20 * time.Millisecond) // so that the times of the files differ
	}
	list, err := s.again().List(s.ctx, session.Filter{})
	s.ok(err)
	var got []string
	for _, sum := range list {
		s.ok(sum.Err)
		if sum.Bytes == 0 || sum.Updated.IsZero() {
			s.Errorf("%+v", sum)
		}
		got = append(got, sum.Meta.ID+": "+sum.Title)
	}
	s.same(got, []string{"c: title of c", "a: ", "b: title of b"})
	list, err = s.again().List(s.ctx, session.Filter{Cwd: "/home/b", Limit: 1})
	s.ok(err)
	if len(list) != 1 || list[0].Meta.ID != "b" {
		s.Errorf("%+v", list)
	}
	list, err = s.again().List(s.ctx, session.Filter{Limit: 2})
	s.ok(err)
	s.same(len(list), 2)
}

func (s *suite) rename() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	s.close(w)
	s.ok(session.Rename(s.ctx, s.again(), "one", "  A \x1b[31mnew\nname "))
	l, err := s.again().Read(s.ctx, "one")
	s.ok(err)
	s.same(l.Title(), session.CleanTitle("  A \x1b[31mnew\nname "))
	list, err := s.again().List(s.ctx, session.Filter{})
	s.ok(err)
	s.same(list[0].Title, l.Title())
	s.is(session.Rename(s.ctx, s.again(), "none", "x"), session.ErrNotFound)
}

func (s *suite) delete() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	_, err := w.Attach("image/png", "", []byte("bytes"))
	s.ok(err)
	s.close(w)
	s.ok(s.again().Delete(s.ctx, "one"))
	s.is(s.again().Delete(s.ctx, "one"), session.ErrNotFound)
	_, err = s.again().Read(s.ctx, "one")
	s.is(err, session.ErrNotFound)
	w = s.create("one") // the id is free again
	s.same(w.Len(), int64(0))
	s.close(w)
}

func (s *suite) closed() {
	w := s.create("one")
	s.append(w, Turn(1)...)
	s.close(w)
	s.close(w)
	_, err := w.Append(session.TurnStart{Turn: 2})
	s.is(err, session.ErrClosed)
	s.ok(w.Checkpoint(s.ctx)) // everything is durable
	next := s.open("one")
	s.append(next, session.TurnStart{Turn: 2})
	s.close(w) // does not take the lock of the next one
	_, err = s.again().Open(s.ctx, "one")
	s.is(err, session.ErrLocked)
	s.close(next)
}
