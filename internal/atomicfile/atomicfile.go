// Package atomicfile writes a file whole: whoever reads it, now or after a crash,
// finds what it was or what it is, never a part.
//
// The bytes go to a temporary file in the same folder, which is synced, renamed, and
// made durable by syncing the folder. A process that is killed meanwhile may leave
// that temporary file; its name begins with a dot and ends in [Suffix]. Everything
// may be called from everywhere; of two writers of one file the later wins whole.
// Who reads a file, changes it and writes it takes a [Lock]. No goroutine is started.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Suffix ends the names of temporary files, which begin with a dot.
const Suffix = ".dsh-tmp"

// Temporary says whether a name is one that this package gives temporary files.
func Temporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, Suffix)
}

// step is called before each thing that is done to the file system. Tests end the
// process there.
var step = func(string) {}

// Write puts data in the place of path, with exactly the permissions of mode. A link
// is followed, so that it stays one; its target has to be there. The folder has to be
// there. On an error path is as it was, but for one of the last step, to sync the
// folder: then the new file is there, and only a loss of power could bring the old back.
func Write(path string, data []byte, mode fs.FileMode) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return fmt.Errorf("write file: %w", err)
		}
	}
	return put(path, data, mode, os.Rename)
}

// Create is Write for a file that must not be there: one that is, a link of that name
// too, is an error that is fs.ErrExist, and stays as it is. Where the file system has
// no hard links the new file can be seen before it is whole.
func Create(path string, data []byte, mode fs.FileMode) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("write file: %w", &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
	}
	return put(path, data, mode, func(tmp, path string) error {
		err := os.Link(tmp, path)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return inPlace(path, data, mode)
		}
		return err
	})
}

// put makes the temporary file and publishes it.
func put(path string, data []byte, mode fs.FileMode, publish func(tmp, path string) error) (err error) {
	dir, name := filepath.Split(path)
	tmp := filepath.Join(dir, "."+short(name)+"-"+rand.Text()[:12]+Suffix)
	defer func() {
		if err != nil {
			err = fmt.Errorf("write file: %w", err)
		}
	}()
	step("create")
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm()&0o600)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }() // it has another name by then, or is of no use
	step("write")
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode.Perm())
	}
	if err == nil {
		step("sync")
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	step("publish")
	if err = publish(tmp, path); err != nil {
		return err
	}
	step("folder")
	return SyncFolder(filepath.Dir(path))
}

// short is as much of a name as leaves room for the rest of a temporary one.
func short(name string) string {
	const most = 64
	if len(name) > most {
		return name[:most]
	}
	return name
}

// inPlace writes a new file where there are no links.
func inPlace(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // the first error is the one to tell
	}
	return err
}

// SyncFolder makes new names in a folder durable. A file system that cannot sync
// folders need not.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
