package workspace

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
)

// fileName is the name of the files.
const fileName = "AGENTS.md"

// workspace is the place of one session.
type workspace struct {
	cfg   Config
	fs    fs.ForPlugins
	roots []fs.Root

	mu    sync.Mutex
	known map[string]known // by path: what was read last
}

// known is what is known of a file as long as its version is the same.
type known struct {
	version string
	text    string // its beginning, at most limits.WorkspaceFile bytes
	size    int64  // of the whole file
	fault   string // why it cannot be shown; "": it can
}

// file is one AGENTS.md on the way to the working folder.
type file struct {
	path   string // of its name
	target string // of the file, links resolved
	known
}

// agents is the context workspace:agents.
func (w *workspace) agents(ctx context.Context, _ prompt.View) (string, error) {
	files := w.find(ctx)
	if err := ctx.Err(); err != nil {
		return "", err // whatever was found until then is not what is there
	}
	w.mu.Lock()
	w.known = map[string]known{}
	for _, f := range files {
		w.known[f.path] = f.known
	}
	w.mu.Unlock()
	return render(files), nil
}

// find gives the files, the nearest to the working folder first.
func (w *workspace) find(ctx context.Context) []file {
	if w.cfg.Cwd == "" {
		return nil
	}
	cwd, err := w.fs.Resolve(ctx, fs.Path(w.cfg.Cwd), nil)
	if err != nil {
		return []file{{path: filepath.Join(w.cfg.Cwd, fileName), target: filepath.Join(w.cfg.Cwd, fileName),
			known: known{fault: "the working folder cannot be reached: " + reason(err)}}}
	}
	var files []file
	dir := cwd.Path
	for range limits.WorkspaceFolders {
		if !w.reached(dir) || ctx.Err() != nil {
			break
		}
		if f, ok := w.look(ctx, filepath.Join(dir, fileName)); ok {
			files = append(files, f)
		}
		git, err := w.fs.Lstat(ctx, fs.Path(filepath.Join(dir, ".git")), nil)
		if err == nil && git != nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return files
}

// reached tells whether a folder is inside of a root.
func (w *workspace) reached(dir string) bool {
	return slices.ContainsFunc(w.roots, func(r fs.Root) bool {
		rel, err := filepath.Rel(r.Path, dir)
		return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
	})
}

// look gives the file of a name; false: there is nothing to say about it.
func (w *workspace) look(ctx context.Context, path string) (file, bool) {
	f := file{path: path, target: path}
	info, err := w.fs.Lstat(ctx, fs.Path(path), nil)
	if err == nil && info == nil {
		return f, false
	}
	if err == nil && info.Type == fs.TypeSymlink {
		if info, err = w.fs.Stat(ctx, fs.Path(path), nil); err == nil && info == nil {
			f.fault = "it is a link to what is not there"
			return f, true
		}
	}
	if err == nil {
		var target fs.Target
		target, err = w.fs.Resolve(ctx, fs.Path(path), nil)
		f.target = target.Path
	}
	switch {
	case err != nil:
		f.fault = "it cannot be read: " + reason(err)
	case info.Type != fs.TypeFile:
		f.fault = "it is not a regular file"
	default:
		f.known = w.read(ctx, f.path, info)
	}
	return f, true
}

// read gives what is shown of a file, from memory if it did not change.
func (w *workspace) read(ctx context.Context, path string, info *fs.Info) known {
	w.mu.Lock()
	had, ok := w.known[path]
	w.mu.Unlock()
	if ok && had.version == info.Version && had.fault == "" {
		return had
	}
	k := known{version: info.Version, size: *info.Size}
	// One character more than is shown, so that none is cut in two.
	length := int64(limits.WorkspaceFile + utf8.UTFMax)
	data, err := w.fs.ReadBytes(ctx, fs.Path(path), &fs.ReadBytesOptions{Length: &length})
	if err != nil {
		k.fault = "it cannot be read: " + reason(err)
		return k
	}
	whole := int64(len(data)) < length
	if whole {
		k.size = int64(len(data)) // it may have changed meanwhile
	}
	shown := data[:cut(data, limits.WorkspaceFile)]
	if !utf8.Valid(shown) || bytes.IndexByte(shown, 0) >= 0 {
		k.fault = "it is not UTF-8 text"
		return k
	}
	k.text = string(shown)
	return k
}

// cut is where a text of at most so many bytes ends: not in a character, and after
// a line where that costs less than half of it.
func cut(data []byte, most int) int {
	if len(data) <= most {
		return len(data)
	}
	if line := bytes.LastIndexByte(data[:most], '\n'); line >= most/2 {
		return line + 1
	}
	for n := most; n > most-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(data[n]) {
			return n
		}
	}
	return most // it is no text
}

// reason is an error in a word or a line: what is told must not change while
// nothing does.
func reason(err error) string {
	if code := service.CodeOf(err); code != "" {
		return code
	}
	return plain.Line(err.Error(), limits.SourceLine)
}

// render writes the files, the outermost first; they come the nearest first, and so
// into the room that there is.
func render(files []file) string {
	left, more := limits.WorkspaceAll, 0
	seen := map[string]string{} // by target: the name that is shown
	var shown []string
	for _, f := range files {
		if f.fault == "" && strings.TrimSpace(f.text) == "" {
			continue
		}
		if same := seen[f.target]; f.fault == "" && same != "" {
			f.fault = fmt.Sprintf("it is the same file as %q", same)
		}
		text := f.render(left)
		if len(text) > left {
			more++
			continue
		}
		left -= len(text)
		if f.fault == "" {
			seen[f.target] = f.path
		}
		shown = append(shown, text)
	}
	if more > 0 {
		shown = append(shown, fmt.Sprintf("[not shown, because there is no room left: %d AGENTS.md of folders further up]\n", more))
	}
	if len(shown) == 0 {
		return ""
	}
	slices.Reverse(shown)
	return agentsText + "\n" + strings.Join(shown, "\n")
}

// render writes the file with as much of its text as there is room for.
func (f *file) render(room int) string {
	head, foot := fmt.Sprintf("<file path=%q>\n", f.path), "</file>\n"
	if f.target != f.path {
		head = fmt.Sprintf("<file path=%q link-to=%q>\n", f.path, f.target)
	}
	if f.fault != "" {
		return head + "[not shown: " + f.fault + "]\n" + foot
	}
	if text := strings.TrimRight(f.text, "\n") + "\n"; int64(len(f.text)) == f.size && len(head)+len(text)+len(foot) < room {
		return head + text + foot
	}
	const note = "[cut here: these are the first %d of %d bytes; read the rest when you need it]\n"
	n := cut([]byte(f.text), max(room-len(head)-len(foot)-len(note)-40, 0)) // 40: the numbers, new lines
	if n == 0 {
		return head + fmt.Sprintf("[not shown: there is no room left for its %d bytes; read it when you need it]\n", f.size) + foot
	}
	return head + strings.TrimRight(f.text[:n], "\n") + "\n" + fmt.Sprintf(note, n, f.size) + foot
}
