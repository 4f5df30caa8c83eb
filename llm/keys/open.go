package keys

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// open opens the file of credentials. It does not wait: what is no regular file,
// such as a pipe whose other end nobody has, is refused.
func open(path string) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; remove it, and put the keys in again with dsh auth", path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
