// Package file gives a model the tools read, write, edit, glob and grep, and
// refuses to let it change what it has not read.
//
// All access is through the service fs, so that its roots, its rules for links and
// the policy on its events bind the tools. They need no agent and no session; with
// an agent, an image is kept as an attachment of its session, else it is in the
// result as base64.
//
// # Paths
//
// A path is absolute or relative to Config.Cwd, and is shown as a person writes
// it: relative where it is below Cwd. Cards have the same paths.
//
// # Read before edit
//
// The plugin listens to fs/write-intent and fs/edit-intent ahead of other policy and
// refuses acts of the model itself ([tool.ActorOf]: within a call, without a mount):
// of a file that exists and that its scope has not read (FS_NOT_OBSERVED), or that
// has changed since (FS_STALE_VERSION). What the scope has seen it learns from
// fs/observed: reading, writing and editing within a call, by whatever tool of the
// composition; searches do not count. write and edit also demand the version that
// was seen, so that nothing comes in between. New files may be created; a file that
// was removed may be written again.
//
// The memory is the process's: limits.FileScopes scopes of limits.FileRemembered
// files, the oldest forgotten first. After a resume it is empty, and the model is
// told to read again. Temporary plugins are not bound: they are no model that could
// have read, and fs has versions for them.
//
// # Order
//
// glob gives the newest first, grep the order of the paths, whatever order the
// search came to them in. Where a search was ended by its limits, what it found by
// then is shown and said to be a part.
//
// # Results
//
// Values are objects; the texts that models read are pure functions of them, as
// the cards are of arguments and result. Meta has a card ready, of read without
// its lines, which are those in the content.
//
// # Concurrency and ownership
//
// read, glob and grep may overlap with all calls. Nothing outlives its call; a
// search runs on the goroutines of fs.Scan. The memory has a lock of its own, a
// leaf.
package file
