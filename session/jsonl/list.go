package jsonl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
)

// List implements session.Store. It reads headers and modification times of all
// sessions, and titles of those that it returns.
func (s *Store) List(ctx context.Context, filter session.Filter) ([]session.Summary, error) {
	entries, err := os.ReadDir(s.root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var list []session.Summary
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		if session.CheckID(e.Name()) != nil {
			continue
		}
		sum, err := s.summary(e.Name())
		if errors.Is(err, session.ErrNotFound) {
			continue // it went meanwhile, or is no session
		}
		if err != nil {
			sum.Meta.ID, sum.Err = e.Name(), err
		}
		if filter.Cwd == "" || filter.Cwd == sum.Meta.Cwd || err != nil && sum.Meta.Cwd == "" {
			list = append(list, sum)
		}
	}
	session.SortSummaries(list)
	if filter.Limit > 0 && len(list) > filter.Limit {
		list = list[:filter.Limit]
	}
	for i := range list {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
		if list[i].Err != nil {
			continue
		}
		dir := filepath.Join(s.root, list[i].Meta.ID)
		list[i].Holder = holder(dir, list[i].Meta.ID)
		list[i].Title, list[i].Err = title(filepath.Join(dir, logName))
		if list[i].Err == nil && list[i].Holder == nil {
			list[i].Err = checkEnd(filepath.Join(dir, logName))
		}
	}
	return list, nil
}

func (s *Store) summary(id string) (session.Summary, error) {
	dir := filepath.Join(s.root, id)
	info, err := os.Stat(filepath.Join(dir, logName))
	if err != nil {
		return session.Summary{}, absent(dir, id, err)
	}
	sum := session.Summary{Updated: info.ModTime(), Bytes: info.Size()}
	sum.Meta, err = readMeta(dir, id)
	return sum, err
}

// readMeta reads the header of a session alone.
func readMeta(dir, id string) (session.Meta, error) {
	path := filepath.Join(dir, logName)
	head, err := readFile(path, 64<<10+1)
	if err != nil {
		return session.Meta{}, fmt.Errorf("read session header: %w", absent(dir, id, err))
	}
	line, _, _ := strings.Cut(string(head), "\n")
	meta, err := session.ParseHeader(line)
	if err != nil {
		return session.Meta{}, fmt.Errorf("%s: %w; nothing was changed", path, err)
	}
	if meta.ID != id {
		return meta, foreign(path, meta.ID)
	}
	return meta, nil
}

// checkEnd looks at the last whole line of a log that nobody writes, if it lies
// in its last block: damage before it is found when the log is read.
func checkEnd(path string) error {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("read end of session: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("read end of session: %w", err)
	}
	start := max(size-endBlock, 0)
	buf := make([]byte, size-start)
	if _, err := f.ReadAt(buf, start); err != nil {
		return fmt.Errorf("read end of session: %w", err)
	}
	end := bytes.LastIndexByte(buf, '\n')
	if end < 0 {
		return nil
	}
	begin := bytes.LastIndexByte(buf[:end], '\n') + 1
	if begin == 0 {
		return nil // the header, which was read, or a line that is long
	}
	if _, err := session.ParseEvent(string(buf[begin:end])); err != nil {
		return fmt.Errorf("%s: %w: the last line: %w", path, session.ErrCorrupt, err)
	}
	return nil
}

// titleHead begins the line of a title. No line holds a newline, so it is found
// only where a line begins.
var titleHead = []byte("\n" + `{"type":"` + string(session.TypeTitle) + `",`)

const (
	block    = 1 << 20
	endBlock = 64 << 10
)

// title finds the last title in a log, from its end backwards.
func title(path string) (string, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return "", fmt.Errorf("read session title: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return "", fmt.Errorf("read session title: %w", err)
	}
	buf := make([]byte, block+len(titleHead))
	for end > 0 {
		start := max(end-block, 0)
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-start+int64(len(titleHead)))], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read session title: %w", err)
		}
		for part := buf[:n]; ; {
			i := bytes.LastIndex(part, titleHead)
			if i < 0 {
				break
			}
			if text, ok := titleAt(f, start+int64(i)+1); ok {
				return text, nil
			}
			part = part[:i]
		}
		end = start
	}
	return "", nil
}

// titleAt reads the title in the line that begins at an offset; false if the line
// is not whole.
func titleAt(f *os.File, off int64) (string, bool) {
	line := make([]byte, 64<<10)
	n, err := f.ReadAt(line, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", false
	}
	text, _, ok := bytes.Cut(line[:n], []byte{'\n'})
	if !ok {
		return "", false
	}
	e, err := session.ParseEvent(string(text))
	if err != nil {
		return "", false
	}
	p, err := e.Payload()
	t, isTitle := p.(session.Title)
	return t.Title, err == nil && isTitle && len(t.Title) <= 4*limits.SessionTitle
}
