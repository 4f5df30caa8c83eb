//go:build !linux

package fs

import (
	"fmt"
	"os"
	"time"
)

// Here a version has no inode and no time of status change: what is written
// through this package has a time of modification of its own.

func version(info os.FileInfo) string {
	return fmt.Sprintf("%x-%x", info.Size(), info.ModTime().UnixNano())
}

func changed(info os.FileInfo) time.Time { return info.ModTime() }

// keepOwner does nothing: a file belongs to who writes it.
func keepOwner(*os.File, os.FileInfo) {}

// pinned is the folder's path: there is no name for an open folder.
func pinned(_ *os.File, path string) string { return path }
