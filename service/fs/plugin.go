package fs

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// plugin is the file system for one plugin.
type plugin struct {
	*local
	c       *cordis.Context // of the plugin: it owns what is started
	by      string
	watches atomic.Int32
}

var _ ForPlugins = (*plugin)(nil)

func (p *plugin) call(ctx context.Context, op string, path Path) *call {
	return &call{ctx: ctx, op: op, path: string(path), by: p.by}
}

// ask asks policy about a call.
func ask[T any](k *call, c *cordis.Context, ev *cordis.Waterfall[T, tool.Decision], payload T) error {
	return k.wrap(service.Ask(k.ctx, c, ev, CodePermissionDenied, payload))
}

// mayRead asks whether the place may be read.
func (p *plugin) mayRead(at *place) error {
	return ask(at.call, p.provider(), ReadIntent, Read{Path: at.abs, Operation: ReadOperation(at.call.op), By: p.by})
}

// provider is the provider's own context, on which policy is asked.
func (p *plugin) provider() *cordis.Context { return p.local.c }

func (p *plugin) observed(k *call, abs, version string, op ObservedOperation) {
	Observed.Emit(k.ctx, p.provider(), Observation{Path: abs, Version: version, Operation: op, By: p.by})
}

// found walks to something that is there and may be read.
func (p *plugin) found(k *call, path Path, follow bool) (*place, error) {
	at, err := p.walk(k, path, "", follow)
	if err != nil {
		return nil, err
	}
	if at.info == nil {
		err = k.wrap(fs.ErrNotExist)
	} else {
		err = p.mayRead(at)
	}
	if err != nil {
		at.close()
		return nil, err
	}
	return at, nil
}

// Resolve implements ForPlugins.
func (p *plugin) Resolve(ctx context.Context, path Path, o *ResolveOptions) (Target, error) {
	k := p.call(ctx, "resolve", path)
	at, err := p.walk(k, path, cwdOf(o), true)
	if err != nil {
		return Target{}, err
	}
	defer at.close()
	if err := p.mayRead(at); err != nil {
		return Target{}, err
	}
	return p.target(at.abs), nil
}

func (l *local) target(abs string) Target {
	return Target{TargetKey: abs, DisplayPath: l.display(abs), Path: abs}
}

func cwdOf(o *ResolveOptions) Path {
	if o == nil {
		return ""
	}
	return o.Cwd
}

// Stat implements ForPlugins.
func (p *plugin) Stat(ctx context.Context, target Path, _ *CallOptions) (*Info, error) {
	return p.stat(p.call(ctx, "stat", target), target, "", true)
}

// Lstat implements ForPlugins.
func (p *plugin) Lstat(ctx context.Context, target Path, o *ResolveOptions) (*Info, error) {
	return p.stat(p.call(ctx, "lstat", target), target, cwdOf(o), false)
}

func (p *plugin) stat(k *call, target, cwd Path, follow bool) (*Info, error) {
	at, err := p.walk(k, target, cwd, follow)
	if err != nil {
		if service.CodeOf(err) == CodeNotDirectory {
			return nil, nil // below a file there is nothing
		}
		return nil, err
	}
	defer at.close()
	if err := p.mayRead(at); err != nil || at.info == nil {
		return nil, err
	}
	info, err := at.settled()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, k.wrap(err)
	}
	out := &Info{Type: typeOf(info), ModifiedMs: info.ModTime().UnixMilli(), Version: version(info)}
	out.Size = sizeOf(info)
	return out, nil
}

// settled looks at the place again until its times are old enough to tell this
// state from the next. What is written all the time does not settle: it is
// waited for three times.
func (p *place) settled() (os.FileInfo, error) {
	for range 3 {
		age := time.Since(changed(p.info))
		if age < 0 || age >= limits.FSRacy {
			break
		}
		wait := time.NewTimer(limits.FSRacy - age)
		select {
		case <-wait.C:
		case <-p.call.ctx.Done():
			wait.Stop()
			return nil, p.call.ctx.Err()
		}
		info, err := p.dir.Lstat(p.name)
		if err != nil {
			return nil, err
		}
		if version(info) == version(p.info) {
			break
		}
		p.info = info
	}
	return p.info, nil
}

// racy tells that a file changed so lately that its times may not tell the next
// change.
func racy(info os.FileInfo) bool {
	age := time.Since(changed(info))
	return age >= 0 && age < limits.FSRacy
}

func typeOf(info os.FileInfo) EntryType {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return TypeFile
	case mode.IsDir():
		return TypeDirectory
	case mode&fs.ModeSymlink != 0:
		return TypeSymlink
	}
	return TypeOther
}

func sizeOf(info os.FileInfo) *int64 {
	if !info.Mode().IsRegular() {
		return nil
	}
	size := info.Size()
	return &size
}

var lockSeed = maphash.MakeSeed()

// lock keeps other writes through this service away from a path. It waits for
// its turn or for the end of the call.
func (l *local) lock(k *call, abs string) (unlock func(), err error) {
	at := l.locks[maphash.String(lockSeed, abs)%uint64(len(l.locks))]
	select {
	case at <- struct{}{}:
		return sync.OnceFunc(func() { <-at }), nil
	case <-k.ctx.Done():
		return nil, k.wrap(k.ctx.Err())
	}
}

// The codes of errors.
const (
	CodeNotFound         = "FS_NOT_FOUND"
	CodeNotDirectory     = "FS_NOT_DIRECTORY"
	CodeNotText          = "FS_NOT_TEXT"
	CodeNotRegularFile   = "FS_NOT_REGULAR_FILE"
	CodePermissionDenied = "FS_PERMISSION_DENIED"
	CodeSandboxDenied    = "FS_SANDBOX_DENIED"
	CodeReadOnly         = "FS_READ_ONLY"
	CodeIO               = "FS_IO_ERROR"
	CodeStaleVersion     = "FS_STALE_VERSION"
	// CodeNotObserved is for policies that want a file read before it is written;
	// this package does not use it. See service.Ask.
	CodeNotObserved     = "FS_NOT_OBSERVED"
	CodeAmbiguousEdit   = "FS_AMBIGUOUS_EDIT"
	CodeEditNotFound    = "FS_EDIT_NOT_FOUND"
	CodeAborted         = "FS_ABORTED"
	CodeTooLarge        = "FS_TOO_LARGE"
	CodeExists          = "FS_EXISTS"
	CodeNotEmpty        = "FS_NOT_EMPTY"
	CodeNoSpace         = "FS_NO_SPACE"
	CodeInvalidArgument = "FS_INVALID_ARGUMENT"
)

// call is one call of a method, for its errors and for policy.
type call struct {
	ctx  context.Context
	op   string // the method
	path string // as the caller gave it
	by   string // the mount that calls
}

// fail makes an error with a code about the call's path.
func (k *call) fail(code, format string, args ...any) error {
	return k.failFor(nil, code, format, args...)
}

func (k *call) failFor(cause error, code, format string, args ...any) error {
	return &service.Error{
		Code:    code,
		Message: fmt.Sprintf("%s %s: %s", k.op, quoted(k.path), fmt.Sprintf(format, args...)),
		Err:     cause,
	}
}

// quoted shows a path or a text in one bounded line.
func quoted(s string) string { return strconv.Quote(plain.Line(s, limits.SourceLine)) }

// wrap gives a system error its code and words. Errors that have a code stay.
func (k *call) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case service.CodeOf(err) != "":
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), k.ctx.Err() != nil:
		return k.failFor(err, CodeAborted, "the call was ended before it was done: %s", reason(err))
	case errors.Is(err, fs.ErrNotExist):
		return k.failFor(err, CodeNotFound, "there is no such file or folder")
	case errors.Is(err, syscall.ENOTDIR):
		return k.failFor(err, CodeNotDirectory, "a part of the path is not a folder")
	case errors.Is(err, syscall.EISDIR):
		return k.failFor(err, CodeNotRegularFile, "it is a folder, not a file")
	case errors.Is(err, syscall.EROFS):
		return k.failFor(err, CodeReadOnly, "it is on a file system that is mounted read-only; write somewhere else")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return k.failFor(err, CodeNoSpace, "there is no space left for it (%s); nothing was written", reason(err))
	case errors.Is(err, syscall.ENOTEMPTY):
		return k.failFor(err, CodeNotEmpty, "the folder is not empty")
	case errors.Is(err, fs.ErrExist):
		return k.failFor(err, CodeExists, "something is there already")
	case errors.Is(err, fs.ErrPermission):
		return k.failFor(err, CodePermissionDenied, "the user that runs this program has no permission for it (%s)", reason(err))
	case errors.Is(err, syscall.ENAMETOOLONG):
		return k.failFor(err, CodeInvalidArgument, "a name in it is too long for the file system")
	case errors.Is(err, syscall.ELOOP):
		return k.failFor(err, CodeIO, "its symbolic links lead in a circle, or it was replaced by a link meanwhile")
	case strings.HasSuffix(err.Error(), "path escapes from parent"): // of os.Root, which exports no value for it
		return k.failFor(err, CodeSandboxDenied, "it was replaced meanwhile by a symbolic link that leads out of its folder")
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return k.failFor(err, CodeIO, "too many files are open; end watches and streams that are not needed, then try again")
	case errors.Is(err, os.ErrClosed):
		return k.failFor(err, CodeIO, "the service fs has ended")
	}
	return k.failFor(err, CodeIO, "%s", reason(err))
}

// reason is an error's text without the host's paths that the os package adds.
func reason(err error) string {
	if e := new(fs.PathError); errors.As(err, &e) {
		err = e.Err
	} else if e := new(os.LinkError); errors.As(err, &e) {
		err = e.Err
	} else if e := new(os.SyscallError); errors.As(err, &e) {
		err = e.Err
	}
	return plain.Line(err.Error(), limits.SourceLine)
}

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	Roots         []string `json:"roots" format:"path" max:"FSRoots" doc:"Folders that may be read and written. Where neither roots nor readOnlyRoots are given it is the folder that dsh works in, unless that is / or your home folder."`
	ReadOnlyRoots []string `json:"readOnlyRoots" format:"path" max:"FSRoots" doc:"Folders that may only be read."`
	Denied        []string `json:"denied" format:"path" max:"FSRoots" doc:"Files and folders that are never reached, whether they are there or not. dsh's own folder is always among them."`
}

// Config is what the settings say. Paths have to be absolute.
func (s Settings) Config() Config {
	return Config{Roots: s.Roots, ReadOnly: s.ReadOnlyRoots, Denied: s.Denied}
}
