package fs

import (
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

// Policy, asked before the service acts; a denial is FS_PERMISSION_DENIED. Paths
// are absolute, with links resolved.
var (
	// ReadIntent asks whether something may be read, listed, found or watched. It
	// is not asked for each file that a listing or a search shows.
	ReadIntent = cordis.NewWaterfall[Read, tool.Decision]("fs/read-intent", cordis.ForPlugins())
	// WriteIntent asks whether a whole file may be written.
	WriteIntent = cordis.NewWaterfall[Write, tool.Decision]("fs/write-intent", cordis.ForPlugins())
	// EditIntent asks whether a part of a file may be replaced.
	EditIntent = cordis.NewWaterfall[EditRequest, tool.Decision]("fs/edit-intent", cordis.ForPlugins())
	// RemoveIntent asks whether something may be removed.
	RemoveIntent = cordis.NewWaterfall[Removal, tool.Decision]("fs/remove-intent", cordis.ForPlugins())
	// MkdirIntent asks whether a folder may be made.
	MkdirIntent = cordis.NewWaterfall[NewFolder, tool.Decision]("fs/mkdir-intent", cordis.ForPlugins())
	// Observed tells that a file's content was read or written.
	Observed = cordis.NewEmit[Observation]("fs/observed", cordis.ForPlugins())
)

// ReadOperation is the method that wants to read.
type ReadOperation string

// The methods that count as reading.
const (
	OpResolve    ReadOperation = "resolve"
	OpStat       ReadOperation = "stat"
	OpLstat      ReadOperation = "lstat"
	OpReadText   ReadOperation = "readText"
	OpStreamText ReadOperation = "streamText"
	OpReadBytes  ReadOperation = "readBytes"
	OpListDir    ReadOperation = "listDir"
	OpGlob       ReadOperation = "glob"
	OpWatch      ReadOperation = "watch"
)

// Read is what someone wants to read.
type Read struct {
	// Path is the file or folder; of a glob, the folder where the search starts.
	Path string `json:"path"`
	// Operation is the method.
	Operation ReadOperation `json:"operation"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// Write is what someone wants to write.
type Write struct {
	// Path is the file.
	Path string `json:"path"`
	// Exists tells whether the file is there now.
	Exists bool `json:"exists"`
	// Kind is what the write expects; absent: nothing.
	Kind WriteKind `json:"kind,omitempty"`
	// Version is the version that is expected with replaceIfVersion.
	Version string `json:"version,omitempty"`
	// Bytes is the size of the new text.
	Bytes int `json:"bytes"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// EditRequest is what someone wants to edit.
type EditRequest struct {
	// Path is the file.
	Path string `json:"path"`
	// OldString is the text to replace, cut to 2,000 characters.
	OldString string `json:"oldString"`
	// NewString is the text that replaces it, cut to 2,000 characters.
	NewString string `json:"newString"`
	// ReplaceAll tells whether every occurrence is replaced.
	ReplaceAll bool `json:"replaceAll"`
	// Version is the version that is expected; absent: any.
	Version string `json:"version,omitempty"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// Removal is what someone wants to remove.
type Removal struct {
	// Path is the file, folder or link.
	Path string `json:"path"`
	// Recursive tells whether a folder goes with everything in it.
	Recursive bool `json:"recursive"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// NewFolder is a folder that someone wants to make.
type NewFolder struct {
	// Path is the folder.
	Path string `json:"path"`
	// Recursive tells whether missing parents are made too.
	Recursive bool `json:"recursive"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// ObservedOperation is how content became known.
type ObservedOperation string

// How content became known.
const (
	ObservedRead  ObservedOperation = "read"
	ObservedWrite ObservedOperation = "write"
	ObservedEdit  ObservedOperation = "edit"
)

// Observation tells whose content became known to whom.
type Observation struct {
	// Path is the file, absolute and with links resolved.
	Path string `json:"path"`
	// Version is the file's version at that time.
	Version string `json:"version"`
	// Operation is how.
	Operation ObservedOperation `json:"operation"`
	// By is the mount that read or wrote, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}
