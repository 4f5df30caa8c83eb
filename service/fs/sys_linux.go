package fs

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// version is the opaque version of what info describes.
func version(info os.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
	}
	return fmt.Sprintf("%x-%x-%x-%x", st.Ino, info.Size(), info.ModTime().UnixNano(), st.Ctim.Nano())
}

// changed is the newest time of info.
func changed(info os.FileInfo) time.Time {
	t := info.ModTime()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if c := time.Unix(st.Ctim.Unix()); c.After(t) {
			return c
		}
	}
	return t
}

// keepOwner gives f the owner of info where the system permits it.
func keepOwner(f *os.File, info os.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid)) // most users may not give files away
	}
}

// pinned names an open folder so that a watch of it cannot be one of another.
func pinned(f *os.File, _ string) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
