package kv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
)

// store is one plugin's. The zero value with a path is a store that is not opened.
type store struct {
	path string // of its file; "": in memory

	mu     sync.Mutex // one call at a time, the file included
	open   bool
	ended  bool
	values map[string]lossless.Text
	size   int // bytes of keys and values
}

func fail(code, format string, args ...any) *service.Error {
	err := fmt.Errorf(format, args...)
	return &service.Error{Code: code, Message: err.Error(), Err: err}
}

func checkKey(key string) error {
	switch {
	case key == "":
		return fail(CodeInvalidKey, "the key is empty: use 1 to %d bytes", limits.KVKey)
	case len(key) > limits.KVKey:
		return fail(CodeInvalidKey, "the key %q has %d bytes: use 1 to %d", plain.Line(key, limits.Name), len(key), limits.KVKey)
	case !utf8.ValidString(key):
		return fail(CodeInvalidKey, "the key %q is not valid Unicode", plain.Line(key, limits.Name))
	}
	return nil
}

// checkValue gives a copy of the value in its shortest form.
func checkValue(key string, value lossless.Text) (lossless.Text, error) {
	if len(value) == 0 {
		return nil, fail(CodeInvalidValue, "the value of %q is missing: pass a JSON value, null among them, or delete the key", plain.Line(key, limits.Name))
	}
	v, err := lossless.Parse(value)
	if err != nil {
		return nil, fail(CodeInvalidValue, "the value of %q is not JSON: %w", plain.Line(key, limits.Name), err)
	}
	value = v.Encode()
	if len(value) > limits.KVValue {
		return nil, fail(CodeTooLarge, "the value of %q has %d bytes as JSON: at most %d can be kept under one key", plain.Line(key, limits.Name), len(value), limits.KVValue)
	}
	return value, nil
}

// begin opens the store. The caller holds mu.
func (s *store) begin() error {
	switch {
	case s.ended:
		return gone()
	case s.open:
		return nil
	case s.path == "":
		s.open, s.values = true, map[string]lossless.Text{}
		return nil
	}
	values, size, err := load(s.path)
	if err != nil {
		return err
	}
	s.open, s.values, s.size = true, values, size
	return nil
}

func (s *store) get(key string) (lossless.Text, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	return bytes.Clone(s.values[key]), nil
}

func (s *store) set(key string, value lossless.Text) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return err
	}
	had, replaced := s.values[key]
	size := s.size + len(value) - len(had)
	if !replaced {
		size += len(key)
		if len(s.values) >= limits.KVKeys {
			return fail(CodeTooLarge, "the store has %d keys already, the most that it holds: delete some first", len(s.values))
		}
	}
	if size > limits.KVTotal {
		return fail(CodeTooLarge, "the store would have %d bytes: it holds at most %d, so delete something first", size, limits.KVTotal)
	}
	s.values[key] = value
	if err := s.save(); err != nil {
		delete(s.values, key)
		if replaced {
			s.values[key] = had
		}
		return err
	}
	s.size = size
	return nil
}

func (s *store) remove(key string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return false, err
	}
	had, ok := s.values[key]
	if !ok {
		return false, nil
	}
	delete(s.values, key)
	if err := s.save(); err != nil {
		s.values[key] = had
		return false, err
	}
	s.size -= len(key) + len(had)
	return true, nil
}

func (s *store) keys(prefix string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	keys := []string{}
	for key := range s.values {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// end ends the store, and removes its file if it is to go.
func (s *store) end(remove bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.values = true, nil
	if s.path == "" || !remove {
		return nil
	}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// load reads a file; one that is not there is empty.
func load(path string) (map[string]lossless.Text, int, error) {
	corrupt := func(format string, args ...any) error {
		return fail(CodeCorrupt, "the store's file %s is not what was written, and is left as it is: %w", filepath.Base(path), fmt.Errorf(format, args...))
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]lossless.Text{}, 0, nil
	}
	if err != nil {
		return nil, 0, ioError("read", path, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	// A file has at most six bytes for one of a key, and some around each entry.
	const most = limits.KVTotal + limits.KVKeys*(6*limits.KVKey+8)
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, 0, ioError("read", path, err)
	}
	if len(text) > most {
		return nil, 0, corrupt("it is larger than %d bytes", most)
	}
	v, err := lossless.Parse(text)
	if err != nil {
		return nil, 0, corrupt("%w", err)
	}
	if v.Kind() != lossless.Object {
		return nil, 0, corrupt("it holds no JSON object")
	}
	values, size := make(map[string]lossless.Text, v.Len()), 0
	for key, member := range v.Members() {
		value, err := checkValue(key, member.Encode())
		if err = errors.Join(checkKey(key), err); err != nil {
			return nil, 0, corrupt("%w", err)
		}
		values[key] = value
		size += len(key) + len(value)
	}
	if size > limits.KVTotal || len(values) > limits.KVKeys {
		return nil, 0, corrupt("it holds more than a store can")
	}
	return values, size, nil
}

// save writes the file anew, whole or not at all. The caller holds mu.
func (s *store) save() (err error) {
	if s.path == "" {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("{")
	between := "\n"
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		b.WriteString(between)
		b.Write(lossless.Str(key).Encode())
		b.WriteString(": ")
		b.Write(s.values[key])
		between = ",\n"
	}
	b.WriteString("\n}\n")
	if err := atomicfile.Write(s.path, b.Bytes(), 0o600); err != nil {
		return ioError("write", s.path, err)
	}
	return nil
}

// ioError tells what the system said, without the folder.
func ioError(doing, path string, err error) error {
	why := err
	if p := new(fs.PathError); errors.As(err, &p) {
		why = p.Err
	} else if l := new(os.LinkError); errors.As(err, &l) {
		why = l.Err
	}
	e := fail(CodeIO, "cannot %s the store's file %s: %v", doing, filepath.Base(path), why)
	e.Err = err
	return e
}
