package trust

import "errors"

// ErrOutside says that a link in a project's .dsh folder leads out of it.
var ErrOutside = errors.New("it leads out of the project's .dsh folder")

// Read reads what of a project may be loaded, once, by path: agent.cordis.yml, and
// below .dsh the YAML (.yml, .yaml) and code (.js, .mjs, .ts, .mts, .json) files,
// without names that begin with a dot and without node_modules. A project without any
// has none, which is no error. Links inside .dsh may lead to other files in it; one
// that leads out, a .dsh that is a link itself, what is no regular file, and more than
// limits.TrustFiles files, limits.TrustFile bytes of one or limits.TrustBytes of all
// are errors that name the file; the files that could be read come with them.
func Read(root string) ([]File, error) { return nil, errors.ErrUnsupported }

// Protected says whether a path, absolute with links resolved, is one by which
// something is loaded: a .dsh folder or anything in it, at any depth, and a file named
// agent.cordis.yml. Upper and lower case are the same, as some file systems have it.
func Protected(path string) bool { return false }

// Locate finds the project that a protected path is of: the folder that holds the
// innermost .dsh, or the agent.cordis.yml, and the path below it.
func Locate(path string) (root, rel string, ok bool) { return "", "", false }
