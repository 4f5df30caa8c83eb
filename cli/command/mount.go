package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
)

// noServices chooses none of them.
const noServices = "none"

// MountOptions are the flags of every command that mounts: limits, and the
// services that plugins may inject.
type MountOptions struct {
	VMTimeout    Duration
	CallTimeout  Duration
	Memory       Mebibytes
	Services     []string
	Roots        []string
	ReadOnly     []string
	PassEnv      []string
	AllowPrivate bool
	// Layers are the documents that are composed; the flags above are the last of them.
	Layers LayerOptions
	given  *pflag.FlagSet
}

// NewMountOptions returns the defaults.
func NewMountOptions() MountOptions {
	return MountOptions{
		VMTimeout:   Duration{limits.VMTimeout, limits.VMTimeoutMin, limits.VMTimeoutMax},
		CallTimeout: Duration{limits.CallTimeout, limits.CallTimeoutMin, limits.CallTimeoutMax},
		Memory:      Mebibytes{limits.VMMemoryMB, limits.VMMemoryMBMin, limits.VMMemoryMBMax},
	}
}

// Flags adds all of the flags.
func (o *MountOptions) Flags(f *pflag.FlagSet) {
	f.Var(&o.VMTimeout, "vm-timeout", "longest time of one entry into mounted code inside the engine")
	f.Var(&o.CallTimeout, "call-timeout", "longest time of a whole entry, waiting included; mounting too")
	f.Var(&o.Memory, "memory", "memory of one mount")
	o.ServiceFlags(f)
}

// ServiceFlags are the flags for what plugins may inject.
func (o *MountOptions) ServiceFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.Services, "services", standard.ServiceNames(), "services that plugins may inject, or none; timer and tools are always there")
	f.StringArrayVar(&o.Roots, "root", nil, "`folder` that fs may read and write; may be repeated (default the working directory, unless that is / or the home folder, or --read-only-root is given)")
	f.StringArrayVar(&o.ReadOnly, "read-only-root", nil, "`folder` that fs may only read; may be repeated")
	f.StringArrayVar(&o.PassEnv, "pass-env", nil, "environment `variable` that commands get although its name is that of a credential; may be repeated")
	f.BoolVar(&o.AllowPrivate, "allow-private-web", false, "let web fetch private, loopback and link-local addresses too")
	o.Layers.Flags(f)
	o.given = f
}

// Check says what is wrong with the flags, and makes the last layer of those that
// were given.
func (o *MountOptions) Check() error {
	if err := o.checkServices(); err != nil {
		return AsUsage(err)
	}
	if err := CheckPassEnv(o.PassEnv); err != nil {
		return err
	}
	if err := checkFolders("--root", o.Roots); err != nil {
		return err
	}
	if err := checkFolders("--read-only-root", o.ReadOnly); err != nil {
		return err
	}
	if err := o.Layers.Check(); err != nil {
		return err
	}
	return o.put(&o.Layers, o.given)
}

func (o *MountOptions) checkServices() error {
	names := slices.DeleteFunc(slices.Clone(o.Services), func(s string) bool { return s == noServices || s == "timer" || s == "tools" })
	if len(o.Services) > 1 && slices.Contains(o.Services, noServices) {
		return fmt.Errorf("--services: %s stands alone", noServices)
	}
	if len(o.Services) == 0 {
		return fmt.Errorf("--services: it needs names, and got an empty one; choose among %s, or %s", strings.Join(standard.ServiceNames(), ", "), noServices)
	}
	for _, name := range names {
		if !slices.Contains(standard.ServiceNames(), name) {
			return fmt.Errorf("--services: there is no service %q; choose among %s, or %s (timer and tools are always there)",
				name, strings.Join(standard.ServiceNames(), ", "), noServices)
		}
	}
	o.Services = names
	return nil
}

// Has reports whether a service was chosen.
func (o *MountOptions) Has(service string) bool { return slices.Contains(o.Services, service) }

// checkFolders makes the names of folders absolute, in place.
func checkFolders(flag string, folders []string) error {
	for i, folder := range folders {
		abs, err := Folder(folder)
		if err != nil {
			return Usagef("%s: %w", flag, err)
		}
		folders[i] = abs
	}
	return nil
}

// Folder is the absolute name of a folder that is there. Its error says the name.
func Folder(name string) (string, error) {
	if name == "" {
		return "", errors.New("it needs the name of a folder, and got an empty one")
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return "", fmt.Errorf("find folder: %w", err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("there is no folder %s", abs)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is no folder", abs)
	}
	return abs, nil
}

// ImpliedRoots are the roots where none are named: dir, an absolute name, unless that
// would be everything.
func ImpliedRoots(dir string) []string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // not known: it cannot be compared
	}
	return fs.DefaultRoots(dir, home)
}

// CheckPassEnv says, as an error of usage, which name of --pass-env is none.
func CheckPassEnv(names []string) error {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "=*\x00") {
			return Usagef("--pass-env %q is no name of a variable: give the name alone, such as GITHUB_TOKEN", name)
		}
	}
	return nil
}

// put makes the flags that were given the last layer of l.
func (o *MountOptions) put(l *LayerOptions, f *pflag.FlagSet) error {
	for _, one := range []struct {
		flag, row, field string
		value            any
	}{
		{"vm-timeout", "tool-cordis", "vmTimeoutMs", milliseconds(o.VMTimeout.Value)},
		{"call-timeout", "tool-cordis", "callTimeoutMs", milliseconds(o.CallTimeout.Value)},
		{"memory", "tool-cordis", "memoryMB", o.Memory.Value},
		{"pass-env", "bash", "passEnv", o.PassEnv},
		{"allow-private-web", "web", "allowPrivate", o.AllowPrivate},
	} {
		if f.Changed(one.flag) {
			if err := l.Put("--"+one.flag, one.row, []string{"config", one.field}, one.value); err != nil {
				return err
			}
		}
	}
	if f.Changed("services") {
		for _, name := range standard.ServiceNames() {
			if err := l.Put("--services", name, []string{"disabled"}, !o.Has(name)); err != nil {
				return err
			}
		}
	}
	if len(o.Roots) > 0 { // commands start where files are
		if err := l.Put("--root", "bash", []string{"config", "dir"}, o.Roots[0]); err != nil {
			return err
		}
	}
	return PutRoots(l, f, o.Roots, o.ReadOnly)
}

// PutRoots makes --root and --read-only-root a part of the last layer: where one of
// them is given, no other layer says what the roots are.
func PutRoots(l *LayerOptions, f *pflag.FlagSet, roots, readOnly []string) error {
	if !f.Changed("root") && !f.Changed("read-only-root") {
		return nil
	}
	for _, one := range []struct {
		flag, field string
		folders     []string
	}{{"--root", "roots", roots}, {"--read-only-root", "readOnlyRoots", readOnly}} {
		if one.folders == nil {
			one.folders = []string{}
		}
		if err := l.Put(one.flag, "fs", []string{"config", one.field}, one.folders); err != nil {
			return err
		}
	}
	return nil
}

// milliseconds are those of a duration, and one more where some are left.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// Warn says at the start what a person should know.
func (o *MountOptions) Warn(w io.Writer) {
	if o.Has("bash") {
		fmt.Fprintln(w, "dsh: "+bash.Unconfined+" (--services chooses)")
	}
}
