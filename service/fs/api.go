package fs

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/dsh-go/dsh/service"
)

// ForPlugins reads, writes and watches files in the folders this program was
// started with (its roots; cordis_inspect names them). A relative path is relative
// to the first root; any other has to be inside a root, also through links. A path
// string does wherever a target is expected. Symbolic links are followed unless a
// method says otherwise. Text is UTF-8.
//
// Errors have a code: FS_NOT_FOUND, FS_NOT_DIRECTORY, FS_NOT_REGULAR_FILE (a folder,
// pipe or device where a file is needed), FS_NOT_TEXT, FS_TOO_LARGE,
// FS_PERMISSION_DENIED (by the system or by policy), FS_SANDBOX_DENIED (outside the
// roots), FS_READ_ONLY, FS_INVALID_ARGUMENT, FS_NO_SPACE, FS_ABORTED, FS_IO_ERROR,
// and those that a method names.
type ForPlugins interface {
	// Resolve gives the target that a path means, whether or not something is there.
	// Its path is absolute, for use in commands.
	Resolve(ctx context.Context, path Path, options *ResolveOptions) (Target, error)

	// Stat tells what is there: null, not an error, if nothing is.
	Stat(ctx context.Context, target Path, options *CallOptions) (*Info, error)

	// Lstat tells what is there without following a link at the end of the path:
	// its type may be "symlink".
	Lstat(ctx context.Context, target Path, options *ResolveOptions) (*Info, error)

	// ReadText reads a whole file of at most 16 MB. Line endings stay as they are.
	ReadText(ctx context.Context, target Path, options *CallOptions) (string, error)

	// StreamText reads a file of any size in pieces of at most 64 KB, which end at the
	// end of a line where they can.
	StreamText(ctx context.Context, target Path, options *CallOptions) iter.Seq2[string, error]

	// ReadBytes reads a file, or a part of it, of at most 4 MB.
	ReadBytes(ctx context.Context, target Path, options *ReadBytesOptions) ([]byte, error)

	// ListDir lists what is in a folder (not in folders below it), sorted by name.
	// Rejects with FS_TOO_LARGE beyond 10,000 entries.
	ListDir(ctx context.Context, target Path, options *CallOptions) ([]DirEntry, error)

	// Glob finds files (not folders) by a pattern such as "src/**/*.{ts,js}". Hidden
	// files match; links to folders are not entered, folders that
	// may not be read are left out. The paths are sorted and can be
	// passed to every method. Rejects with FS_TOO_LARGE beyond 10,000, or set a limit.
	Glob(ctx context.Context, pattern string, options *GlobOptions) ([]string, error)

	// WriteText writes a whole file, atomically and durably. Without options it creates
	// the file or REPLACES what is there; missing folders are created. Rejects with
	// FS_EXISTS or FS_STALE_VERSION where what options expect does not hold. The content
	// is at most 16 MB. To append: stat, then readText, then writeText with the version.
	WriteText(ctx context.Context, target Path, content string, options *WriteOptions) (Written, error)

	// EditText replaces oldString, which has to occur exactly once in the file unless
	// replaceAll is set, else FS_EDIT_NOT_FOUND or FS_AMBIGUOUS_EDIT. FS_STALE_VERSION
	// if the file changed. \n in it matches \r\n too; what is inserted takes the line
	// ending of most lines. The rest keeps its bytes.
	EditText(ctx context.Context, target Path, edit Edit, options *EditOptions) (Edited, error)

	// Remove removes a file, an empty folder, or a link (not what it leads to). Rejects
	// with FS_NOT_EMPTY for a folder with something in it, unless recursive is set.
	Remove(ctx context.Context, target Path, options *RemoveOptions) error

	// Mkdir makes a folder, whose parent has to be there and itself not (FS_EXISTS),
	// unless recursive is set.
	Mkdir(ctx context.Context, target Path, options *MkdirOptions) error

	// Watch calls back when something in a folder, or a file, changes, until the
	// returned function is called or your plugin ends. What changes within 50 ms comes
	// together, one call at a time. Paths of changes are as glob gives them. The target
	// has to be there.
	//
	// callback gets the changes; an error of it is logged.
	Watch(ctx context.Context, target Path, callback func(ctx context.Context, changes []Change) error, options *WatchOptions) (service.Dispose, error)
}

// Path is a path string, or a target.
//
//dsh:ts string | Target
type Path string

// UnmarshalJSON reads a string, or a target.
func (p *Path) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil && string(data) != "null" {
		*p = Path(s)
		return nil
	}
	var t Target
	if json.Unmarshal(data, &t) != nil || t.TargetKey == "" {
		return errors.New(`expected a path string, or a target as resolve() and listDir() give it: {targetKey: "…"}`)
	}
	*p = Path(t.TargetKey)
	return nil
}

// Target is one place in the file system, by whatever path it was named.
type Target struct {
	// TargetKey is the same for all names of the same place; compare it, do not take it apart.
	TargetKey string `json:"targetKey"`
	// DisplayPath is short: relative to the first root where it is inside it. It can be used as a path.
	DisplayPath string `json:"displayPath"`
	// Path is absolute, with links resolved.
	Path string `json:"path"`
}

// EntryType is what is at a path.
type EntryType string

// The types of entries. Only lstat and listDir give symlink.
const (
	TypeFile      EntryType = "file"
	TypeDirectory EntryType = "directory"
	TypeSymlink   EntryType = "symlink"
	TypeOther     EntryType = "other" // a pipe, socket or device
)

// Info is what stat tells.
type Info struct {
	// Type is what is there.
	Type EntryType `json:"type"`
	// Size is in bytes; only of files.
	Size *int64 `json:"size,omitempty"`
	// ModifiedMs is when it was last modified, in milliseconds as Date.now() counts.
	ModifiedMs int64 `json:"modifiedMs"`
	// Version is another text whenever the file has changed.
	Version string `json:"version"`
}

// DirEntry is one entry of a folder.
type DirEntry struct {
	// Name is the name in its folder.
	Name string `json:"name"`
	// Type is what it is; links are not followed.
	Type EntryType `json:"type"`
	// Target can be passed to every method.
	Target Target `json:"target"`
	// Size is in bytes; only of files.
	Size *int64 `json:"size,omitempty"`
	// Version is as of stat; absent for what changed a moment ago.
	Version string `json:"version,omitempty"`
}

// CallOptions are for methods without other options.
type CallOptions struct {
	// Signal ends the call with FS_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// ResolveOptions say what a path is relative to.
type ResolveOptions struct {
	// Cwd is the folder that a relative path starts at; the first root by default.
	Cwd Path `json:"cwd,omitempty"`
	// Signal ends the call with FS_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// ReadBytesOptions say which part of a file is read.
type ReadBytesOptions struct {
	// Offset is the first byte; 0 by default.
	Offset int64 `json:"offset,omitempty"`
	// Length is the most bytes to read; to the end of the file by default.
	Length *int64 `json:"length,omitempty"`
	// Signal ends the call with FS_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// GlobOptions narrow a search.
type GlobOptions struct {
	// Cwd is the folder that the pattern starts at; the first root by default.
	Cwd Path `json:"cwd,omitempty"`
	// Exclude are patterns of files and folders to leave out, such as "**/node_modules".
	Exclude []string `json:"exclude,omitempty"`
	// Limit ends the search at so many paths, at most 10,000, of which there may be more; which ones is not defined.
	Limit int `json:"limit,omitempty"`
	// Signal ends the call with FS_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// WriteKind is what a write expects.
type WriteKind string

// The kinds of conditional writes.
const (
	CreateIfAbsent   WriteKind = "createIfAbsent"
	ReplaceIfVersion WriteKind = "replaceIfVersion"
)

// WriteOptions say what has to hold for a write. Absent: it is unconditional.
type WriteOptions struct {
	// Kind is what is expected: createIfAbsent never replaces anything, replaceIfVersion needs version. Absent: nothing.
	Kind WriteKind `json:"kind,omitempty"`
	// Version is what the file has to be at, from stat or an earlier write.
	Version string `json:"version,omitempty"`
	// Signal ends the call with FS_ABORTED; the file is as it was.
	Signal service.Signal `json:"signal,omitzero"`
}

// WriteOperation is what a write did.
type WriteOperation string

// What a write did.
const (
	OperationCreate WriteOperation = "create"
	OperationUpdate WriteOperation = "update"
)

// Written is the result of writeText.
type Written struct {
	// Operation tells whether something was replaced.
	Operation WriteOperation `json:"operation"`
	// Version is the file's new version.
	Version string `json:"version"`
	// Before is the text that was replaced; null if nothing, or no text, was there.
	Before *string `json:"before"`
	// After is the text that is there now.
	After string `json:"after"`
	// Truncated tells that before or after was cut to its first 64 KB.
	Truncated bool `json:"truncated"`
}

// Edit is what editText replaces.
type Edit struct {
	// OldString is the exact text to replace, not empty, at most 1 MB.
	OldString string `json:"oldString"`
	// NewString is what comes in its place; it may be empty.
	NewString string `json:"newString"`
	// ReplaceAll replaces every occurrence.
	ReplaceAll bool `json:"replaceAll,omitempty"`
}

// EditOptions say what has to hold for an edit.
type EditOptions struct {
	// Version is what the file has to be at, from stat or an earlier write; absent: any.
	Version string `json:"version,omitempty"`
	// Signal ends the call with FS_ABORTED; the file is as it was.
	Signal service.Signal `json:"signal,omitzero"`
}

// Edited is the result of editText.
type Edited struct {
	// Version is the file's new version.
	Version string `json:"version"`
	// Replacements counts what was replaced.
	Replacements int `json:"replacements"`
	// Before is the file's text before the edit.
	Before string `json:"before"`
	// After is the file's text now.
	After string `json:"after"`
	// Truncated tells that before or after was cut to its first 64 KB.
	Truncated bool `json:"truncated"`
}

// RemoveOptions say what may be removed.
type RemoveOptions struct {
	// Recursive removes a folder with everything in it.
	Recursive bool `json:"recursive,omitempty"`
	// Signal ends the call with FS_ABORTED; what is removed by then is gone.
	Signal service.Signal `json:"signal,omitzero"`
}

// MkdirOptions say what a new folder needs.
type MkdirOptions struct {
	// Recursive makes missing parents too, and takes a folder that is there already.
	Recursive bool `json:"recursive,omitempty"`
	// Signal ends the call with FS_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// WatchOptions say what is watched.
type WatchOptions struct {
	// Recursive watches the folders below too, new ones included.
	Recursive bool `json:"recursive,omitempty"`
	// Signal ends the call while it starts the watch, not the watch.
	Signal service.Signal `json:"signal,omitzero"`
}

// ChangeKind is how something changed.
type ChangeKind string

// How something changed.
const (
	Created  ChangeKind = "created"
	Modified ChangeKind = "modified"
	Removed  ChangeKind = "removed"
	Overflow ChangeKind = "overflow" // too much at once: changes were lost, list again
)

// Change is one change that a watch saw.
type Change struct {
	// Path is what changed, relative to the first root where it is inside it; of an overflow, what is watched.
	Path string `json:"path"`
	// Kind is what became of it; a move is removed and created; overflow: changes were lost, look again.
	Kind ChangeKind `json:"kind"`
}
