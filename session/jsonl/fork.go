package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
)

// Fork implements session.Store.
func (s *Store) Fork(ctx context.Context, id string, at int64, newID string) (session.Meta, error) {
	dir, err := s.dir(id)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return session.Meta{}, fmt.Errorf("fork session: %w", err)
	}
	l, err := readForFork(dir, id, at)
	if err != nil {
		return session.Meta{}, fmt.Errorf("fork session: %w", err)
	}
	meta, events, err := l.Fork(at, newID)
	if err != nil {
		return session.Meta{}, err
	}
	w, err := s.build(meta, events, filepath.Join(dir, attName))
	if err != nil {
		return session.Meta{}, fmt.Errorf("fork session %s: %s: %w", id, newID, err)
	}
	w.abandon()
	return meta, nil
}

// readForFork reads the log of a session that is to be forked, repaired. Damage
// behind the event at, which is not -1 then, does no harm.
func readForFork(dir, id string, at int64) (*session.Log, error) {
	l, _, _, err := readLog(dir, id)
	if errors.Is(err, session.ErrCorrupt) && at >= 0 {
		if part, ok := readTo(dir, id, at); ok {
			return part, nil
		}
	}
	if err == nil {
		_, err = l.Repair()
	}
	return l, err
}

// readTo reads a log up to and including an event: its header and at+1 lines.
func readTo(dir, id string, at int64) (*session.Log, bool) {
	text, err := readFile(filepath.Join(dir, logName), limits.SessionBytes+limits.SessionEvent)
	if err != nil {
		return nil, false
	}
	size := 0
	for n := int64(-1); n <= at; n++ {
		i := bytes.IndexByte(text[size:], '\n')
		if i < 0 {
			return nil, false
		}
		size += i + 1
	}
	l, _, err := session.Decode(string(text[:size]), nil)
	return l, err == nil && l.Meta().ID == id
}

// Sound returns the last event of a damaged log at which it can be forked: what is
// before it is whole and it lies in no turn. It is -1 where there is none.
func (s *Store) Sound(ctx context.Context, id string) int64 {
	dir, err := s.dir(id)
	if err != nil || ctx.Err() != nil {
		return -1
	}
	text, err := readFile(filepath.Join(dir, logName), limits.SessionBytes+limits.SessionEvent)
	if err != nil {
		return -1
	}
	// What is whole is a prefix. kept is told with the error, too.
	_, kept, err := session.Decode(string(text), nil)
	if err == nil || kept == 0 {
		return -1
	}
	l, _, err := session.Decode(string(text[:kept]), nil)
	if err != nil || l.Meta().ID != id {
		return -1
	}
	events, turn := l.Events(0), l.Turn()
	if !turn.TurnOpen {
		return l.Len() - 1
	}
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type == session.TypeTurnStart {
			return int64(i) - 1
		}
	}
	return -1
}
