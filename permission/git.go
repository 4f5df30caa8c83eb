package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/permission/shell"
	"github.com/dsh-go/dsh/service/fs"
)

// strayGit says why a command of git that only reads may run something here: git
// takes the settings, and so programs to run, of a bare repository that it stands in,
// and any project can hold one as ordinary files. "": it cannot, or there is no git.
// Repositories with a .git are trusted: nobody gets that from a checkout.
func (a *act) strayGit() string {
	if !slices.ContainsFunc(a.line.Commands, isGit) {
		return ""
	}
	folders := []string{a.workdir}
	for _, c := range a.line.Commands {
		switch name := filepath.Base(c.Args[0].Text); {
		case name == "cd" || name == "pushd":
			next, ok := moved(folders, target(c.Args[1:]))
			if !ok {
				return "git runs in a folder that is not known before it runs"
			}
			folders = next
		case isGit(c):
			if slices.ContainsFunc(c.Outer, inEachFolder) {
				return "git runs in folders that are not known before it runs"
			}
			at, ok := gitFolders(c.Args[1:], folders)
			if !ok {
				return "git runs in a folder that is not known before it runs"
			}
			if slices.ContainsFunc(at, bare) {
				return "git would follow the settings of a bare repository, which may run programs"
			}
		}
	}
	return ""
}

func isGit(c shell.Command) bool { return c.Args[0].Literal && filepath.Base(c.Args[0].Text) == "git" }

// inEachFolder says whether find runs a command where it finds something.
func inEachFolder(words []shell.Word) bool {
	return slices.ContainsFunc(words, func(w shell.Word) bool { return w.Text == "-execdir" || w.Text == "-okdir" })
}

// target is where cd goes; "~" for home, and "" for back.
func target(args []shell.Word) shell.Word {
	for len(args) > 0 && args[0].Literal && strings.HasPrefix(args[0].Text, "-") && args[0].Text != "-" {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		home, err := os.UserHomeDir()
		return shell.Word{Text: home, Literal: err == nil, Single: true}
	case args[0].Literal && (args[0].Text == "-" || strings.HasPrefix(args[0].Text, "+")):
		return shell.Word{Literal: true, Single: true}
	}
	return args[0]
}

// mostFolders bounds the folders that a line may be in.
const mostFolders = 64

// moved are the folders with those to which w leads from them.
func moved(folders []string, w shell.Word) (all []string, ok bool) {
	if !w.Literal {
		return nil, false
	}
	all = slices.Clone(folders)
	for _, f := range folders {
		to := w.Text
		if !filepath.IsAbs(to) {
			to = f + string(filepath.Separator) + to
		}
		for _, f := range []string{filepath.Clean(to), fs.Canonical(to)} { // a shell goes up by the name, a program by the folder
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all, len(all) <= mostFolders
}

// gitFolders are the folders in which git with these arguments works.
func gitFolders(args []shell.Word, folders []string) (all []string, ok bool) {
	for len(args) > 0 && args[0].Literal && strings.HasPrefix(args[0].Text, "-") {
		if args[0].Text == "-C" {
			if len(args) < 2 {
				return nil, false
			}
			if folders, ok = moved(folders, args[1]); !ok {
				return nil, false
			}
			args = args[1:]
		}
		args = args[1:]
	}
	return folders, true
}

// bare says whether git takes the folder, or one that it is in, for a repository
// without a .git.
func bare(folder string) bool {
	exists := func(parts ...string) bool {
		_, err := os.Lstat(filepath.Join(parts...))
		return err == nil
	}
	for at := fs.Canonical(folder); ; at = filepath.Dir(at) {
		switch {
		case filepath.Base(at) == ".git", exists(at, ".git"):
			return false
		case exists(at, "HEAD") && (exists(at, "objects") || exists(at, "commondir")):
			return !slices.Contains(strings.Split(filepath.ToSlash(at), "/"), ".git")
		case filepath.Dir(at) == at:
			return false
		}
	}
}
