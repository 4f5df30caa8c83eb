package fs

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
)

// WriteText implements ForPlugins.
func (p *plugin) WriteText(ctx context.Context, target Path, content string, o *WriteOptions) (Written, error) {
	k := p.call(ctx, "writeText", target)
	kind, expected, err := expectation(k, o)
	if err == nil {
		err = checkContent(k, "content", content, limits.FSText)
	}
	if err != nil {
		return Written{}, err
	}
	at, err := p.walk(k, target, "", true)
	if err != nil {
		return Written{}, err
	}
	defer at.close()
	done := new(Done)
	if err := p.mayWrite(at, kind, expected, content, done); err != nil {
		return Written{}, err
	}
	unlock, err := p.lock(k, at.abs)
	if err != nil {
		return Written{}, err
	}
	defer unlock()
	out, err := p.write(at, kind, expected, content)
	if err != nil {
		return Written{}, k.wrap(err)
	}
	unlock()
	done.tell(ctx, Committed{Content: content})
	p.observed(k, at.abs, out.Version, ObservedWrite)
	return out, nil
}

// expectation checks the options of a write.
func expectation(k *call, o *WriteOptions) (WriteKind, string, error) {
	switch {
	case o == nil, o.Kind == "" && o.Version == "":
		return "", "", nil
	case o.Kind == CreateIfAbsent && o.Version == "":
		return CreateIfAbsent, "", nil
	case o.Kind == ReplaceIfVersion && o.Version != "":
		return ReplaceIfVersion, o.Version, nil
	}
	return "", "", k.fail(CodeInvalidArgument, `kind %s with version %s means nothing; give {kind: "createIfAbsent"}, or {kind: "replaceIfVersion", version: "…"}, or neither to replace whatever is there`, quoted(string(o.Kind)), quoted(o.Version))
}

// checkContent refuses what readText would not read.
func checkContent(k *call, what, content string, max int) error {
	switch {
	case len(content) > max:
		return k.fail(CodeTooLarge, "%s has %d bytes; at most %d are taken", what, len(content), max)
	case strings.IndexByte(content, 0) >= 0:
		return k.fail(CodeNotText, "%s contains a NUL character, so it is not text", what)
	case !utf8.ValidString(content):
		return k.fail(CodeNotText, "%s is not valid UTF-8", what)
	}
	return nil
}

func (p *plugin) mayWrite(at *place, kind WriteKind, expected, content string, done *Done) error {
	if at.info != nil {
		if err := regular(at); err != nil {
			return err
		}
	}
	if err := p.writable(at); err != nil {
		return err
	}
	return ask(at.call, p.provider(), WriteIntent,
		Write{Path: at.abs, Exists: at.info != nil, Kind: kind, Version: expected, Bytes: len(content), Content: content, Done: done, By: p.by})
}

// write does it, with the path locked.
func (p *plugin) write(at *place, kind WriteKind, expected, content string) (Written, error) {
	k := at.call
	if len(at.missing) == 0 || kind != ReplaceIfVersion {
		if err := at.make(); err != nil {
			return Written{}, err
		}
		if err := at.look(); err != nil {
			return Written{}, err
		}
	}
	out := Written{Operation: OperationCreate}
	if at.info != nil {
		if kind == CreateIfAbsent {
			return Written{}, k.exists()
		}
		out.Operation = OperationUpdate
		if err := at.openable(); err != nil {
			return Written{}, err
		}
		before, cut, err := at.echo()
		if err != nil {
			return Written{}, err
		}
		out.Before, out.Truncated = before, cut
	}
	switch {
	case kind == ReplaceIfVersion && at.info == nil:
		return Written{}, k.fail(CodeStaleVersion, "nothing is there any more, so it is not at version %s", quoted(expected))
	case kind == ReplaceIfVersion && version(at.info) != expected:
		return Written{}, k.stale("it is not at version %s; it is at %q now", quoted(expected), version(at.info))
	}
	var err error
	if out.Version, err = at.put(content, kind); err != nil {
		return Written{}, err
	}
	var cut bool
	out.After, cut = echo(content)
	out.Truncated = out.Truncated || cut
	return out, nil
}

func (k *call) exists() error {
	return k.fail(CodeExists, "something is there already, and nothing was replaced")
}

func (k *call) stale(format string, args ...any) error {
	return k.fail(CodeStaleVersion, format+". Read it again, then use its version of then", args...)
}

// make makes the folders that are missing.
func (p *place) make() error {
	for _, name := range p.missing {
		if err := p.dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := p.dir.Lstat(name)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return p.call.fail(CodeNotDirectory, "a part of the path became something else than a folder meanwhile")
		}
		sub, err := enter(p.dir, name, info)
		if err != nil {
			return err
		}
		err = syncFolder(p.dir)
		_ = p.dir.Close()
		p.dir = sub
		if err != nil {
			return err
		}
	}
	p.missing = nil
	return nil
}

// look looks again at what is at the place, with the path locked.
func (p *place) look() error {
	info, err := p.dir.Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		p.info = nil
		return nil
	}
	if err != nil {
		return err
	}
	p.info = info
	return regular(p)
}

// openable tells whether the file's own permissions let it be written: renaming
// would not ask for them.
func (p *place) openable() error {
	f, err := p.dir.OpenFile(p.name, os.O_WRONLY|openFlags, 0)
	if err == nil {
		done(f)
		return nil
	}
	if errors.Is(err, syscall.ETXTBSY) {
		return nil // a program that runs keeps the file it has
	}
	return err
}

// echo reads what is shown of the text at the place; nil where it is no text or
// cannot be read.
func (p *place) echo() (text *string, cut bool, err error) {
	f, err := openRegular(p)
	if errors.Is(err, errAgain) {
		return nil, false, p.call.stale("it is being replaced by someone else at this moment")
	}
	if err != nil {
		return nil, false, nil // what cannot be read is not shown
	}
	defer done(f)
	data, err := io.ReadAll(io.LimitReader(f, limits.FSEcho+utf8.UTFMax))
	if err != nil {
		return nil, false, err
	}
	s, cut := echo(string(data))
	if checkContent(p.call, "", s, limits.FSEcho) != nil {
		return nil, false, nil
	}
	return &s, cut, nil
}

// echo cuts a text to what a result shows of it.
func echo(s string) (string, bool) {
	if len(s) <= limits.FSEcho {
		return s, false
	}
	end := limits.FSEcho
	for i := end; i > end-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			end = i
			break
		}
	}
	return s[:end], true
}

// The names of files that are being written.
const (
	tempPrefix = ".dsh-"
	tempSuffix = ".tmp"
)

// expectSame is the kind of an edit: the file has to be the one in p.info still.
const expectSame WriteKind = "same"

// put writes content beside the place and publishes it there. p.info is what is
// replaced, nil if nothing is there; it gives the new version.
func (p *place) put(content string, kind WriteKind) (string, error) {
	tmp := tempPrefix + rand.Text() + tempSuffix
	mode := fs.FileMode(0o666) // less the umask, as every new file
	if p.info != nil {
		mode = 0o600
	}
	f, err := p.dir.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", err
	}
	defer func() { _ = p.dir.Remove(tmp) }() // it has another name by then, or is of no use
	if err := p.fill(f, content); err != nil {
		_ = f.Close()
		return "", err
	}
	now := time.Now() // finer than the system's clock for files: see Versions
	err = errors.Join(p.dir.Chtimes(tmp, now, now), f.Sync(), f.Close())
	if err != nil {
		return "", err
	}
	mine, err := p.dir.Lstat(tmp)
	if err == nil {
		err = p.call.ctx.Err()
	}
	if err == nil {
		err = p.publish(tmp, content, kind)
	}
	if err == nil {
		err = syncFolder(p.dir)
	}
	if err != nil {
		return "", err
	}
	if info, err := p.dir.Lstat(p.name); err == nil && (os.SameFile(info, mine) || kind == CreateIfAbsent) {
		return version(info), nil
	}
	return version(mine), nil // someone replaced it already
}

// fill gives the temporary file its permissions and content.
func (p *place) fill(f *os.File, content string) error {
	if p.info != nil {
		keepOwner(f, p.info)
		if err := f.Chmod(p.info.Mode().Perm()); err != nil {
			return err
		}
	}
	for len(content) > 0 {
		if err := p.call.ctx.Err(); err != nil {
			return err
		}
		n := min(len(content), readStep)
		if _, err := f.WriteString(content[:n]); err != nil {
			return err
		}
		content = content[n:]
	}
	return nil
}

// publish gives the temporary file its name.
func (p *place) publish(tmp, content string, kind WriteKind) error {
	switch kind {
	case CreateIfAbsent:
		err := p.dir.Link(tmp, p.name)
		if errors.Is(err, fs.ErrExist) {
			return p.call.exists()
		}
		if err != nil {
			return p.create(content) // no links here
		}
		return p.dir.Remove(tmp)
	case ReplaceIfVersion, expectSame:
		info, err := p.dir.Lstat(p.name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil || version(info) != version(p.info) {
			return p.call.stale("someone else changed it while it was written; it is as they left it")
		}
	}
	return p.dir.Rename(tmp, p.name)
}

// create writes a new file in its place, which replaces nothing either, but can
// be seen before it is whole.
func (p *place) create(content string) error {
	f, err := p.dir.OpenFile(p.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return p.call.exists()
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = p.dir.Remove(p.name) // the first error is the one to tell
	}
	return err
}

// syncFolder makes a new name in a folder durable. Some file systems cannot, and
// need not.
func syncFolder(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	err = f.Sync()
	done(f)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Done is where a listener of [WriteIntent] or [EditIntent] in Go says what it wants
// to do when that very write has been done. It is safe for concurrent use; a nil one
// takes nothing.
type Done struct {
	mu   sync.Mutex
	then []func(context.Context, Committed)
}

// Committed is what a write did to a file.
type Committed struct {
	// Before is the text that an edit found; nil of a write of the whole file, which
	// looks at none.
	Before *string
	// Content is the text that was written, whole.
	Content string
}

// Then has f called once the write has been done, and is durable, before whoever
// wants it hears so: on their goroutine, with their context, with no lock held. It is
// never called for a write that was refused or went wrong. By then the file may have
// been changed again.
func (d *Done) Then(f func(context.Context, Committed)) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.then = append(d.then, f)
}

func (d *Done) tell(ctx context.Context, c Committed) {
	d.mu.Lock()
	then := d.then
	d.then = nil
	d.mu.Unlock()
	for _, f := range then {
		f(ctx, c)
	}
}
