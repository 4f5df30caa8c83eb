package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/kv"
	"github.com/dsh-go/dsh/service/log"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

// serviceRow is one service that --services chooses.
type serviceRow struct {
	name   string
	plugin func(*mountOptions) *cordis.Plugin
}

// services are those that --services chooses among, by name. The services tools
// and timer reach nothing outside and are always there.
var services = []serviceRow{
	{"bash", func(o *mountOptions) *cordis.Plugin {
		cfg := bash.Config{PassEnv: o.passEnv, Program: workerProgram}
		if len(o.roots) > 0 {
			cfg.Dir = o.roots[0]
		}
		return bash.Plugin(cfg)
	}},
	{"fs", func(o *mountOptions) *cordis.Plugin {
		return fs.Plugin(fs.Config{Roots: o.roots, ReadOnly: o.readOnly})
	}},
	{"kv", func(*mountOptions) *cordis.Plugin { return kv.Plugin(kv.Config{}) }},
	{"log", func(*mountOptions) *cordis.Plugin { return log.Plugin() }},
	{"web", func(o *mountOptions) *cordis.Plugin { return web.Plugin(web.Config{AllowPrivate: o.allowPrivate}) }},
}

func serviceNames() []string {
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.name
	}
	return names
}

// noServices chooses none of them.
const noServices = "none"

// mountOptions are the flags of every command that mounts: limits, and the
// services that plugins may inject.
type mountOptions struct {
	vmTimeout    durationFlag
	callTimeout  durationFlag
	memory       mebibytes
	services     []string
	roots        []string
	readOnly     []string
	passEnv      []string
	allowPrivate bool
}

func newMountOptions() mountOptions {
	return mountOptions{
		vmTimeout:   durationFlag{limits.VMTimeout, limits.VMTimeoutMin, limits.VMTimeoutMax},
		callTimeout: durationFlag{limits.CallTimeout, limits.CallTimeoutMin, limits.CallTimeoutMax},
		memory:      mebibytes{limits.VMMemoryMB, limits.VMMemoryMBMin, limits.VMMemoryMBMax},
	}
}

func (o *mountOptions) flags(f *pflag.FlagSet) {
	f.Var(&o.vmTimeout, "vm-timeout", "longest time of one entry into mounted code inside the engine")
	f.Var(&o.callTimeout, "call-timeout", "longest time of a whole entry, waiting included; mounting too")
	f.Var(&o.memory, "memory", "memory of one mount")
	o.serviceFlags(f)
}

// serviceFlags are the flags for what plugins may inject.
func (o *mountOptions) serviceFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.services, "services", serviceNames(), "services that plugins may inject, or none; timer and tools are always there")
	f.StringArrayVar(&o.roots, "root", nil, "`folder` that fs may read and write; may be repeated (default the working directory, unless that is / or the home folder, or --read-only-root is given)")
	f.StringArrayVar(&o.readOnly, "read-only-root", nil, "`folder` that fs may only read; may be repeated")
	f.StringArrayVar(&o.passEnv, "pass-env", nil, "environment `variable` that commands get although its name is that of a credential; may be repeated")
	f.BoolVar(&o.allowPrivate, "allow-private-web", false, "let web fetch private, loopback and link-local addresses too")
}

// check says what is wrong with the flags, and fills in what depends on the
// place and time of the start.
func (o *mountOptions) check() error {
	if err := o.checkServices(); err != nil {
		return usageError{err}
	}
	for _, name := range o.passEnv {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return usageError{fmt.Errorf("--pass-env %q is no name of a variable: give the name alone, such as GITHUB_TOKEN", name)}
		}
	}
	if !o.has("fs") {
		return nil
	}
	if len(o.roots)+len(o.readOnly) == 0 {
		root, err := impliedRoot()
		if err != nil {
			return err
		}
		o.roots = root
	}
	if err := checkFolders("--root", o.roots); err != nil {
		return err
	}
	return checkFolders("--read-only-root", o.readOnly)
}

func (o *mountOptions) checkServices() error {
	names := slices.DeleteFunc(slices.Clone(o.services), func(s string) bool { return s == noServices || s == "timer" || s == "tools" })
	if len(o.services) > 1 && slices.Contains(o.services, noServices) {
		return fmt.Errorf("--services: %s stands alone", noServices)
	}
	if len(o.services) == 0 {
		return fmt.Errorf("--services: it needs names, and got an empty one; choose among %s, or %s", strings.Join(serviceNames(), ", "), noServices)
	}
	for _, name := range names {
		if !slices.Contains(serviceNames(), name) {
			return fmt.Errorf("--services: there is no service %q; choose among %s, or %s (timer and tools are always there)",
				name, strings.Join(serviceNames(), ", "), noServices)
		}
	}
	o.services = names
	return nil
}

func (o *mountOptions) has(service string) bool { return slices.Contains(o.services, service) }

// checkFolders makes the names of folders absolute, in place.
func checkFolders(flag string, folders []string) error {
	for i, folder := range folders {
		abs, err := checkFolder(folder)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", flag, err)}
		}
		folders[i] = abs
	}
	return nil
}

func checkFolder(name string) (string, error) {
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

// impliedRoot is the working directory, unless that would be everything.
func impliedRoot() ([]string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // not known: it cannot be compared
	}
	return fs.DefaultRoots(dir, home), nil
}

// plugins are those of the services that were chosen.
func (o *mountOptions) plugins() []*cordis.Plugin {
	plugins := []*cordis.Plugin{tool.Plugin(), timer.Plugin()}
	for _, s := range services {
		if o.has(s.name) {
			plugins = append(plugins, s.plugin(o))
		}
	}
	return plugins
}

// warn says at the start what a person should know.
func (o *mountOptions) warn(w io.Writer) {
	if o.has("bash") {
		fmt.Fprintln(w, "dsh: "+bash.Unconfined+" (--services chooses)")
	}
}
