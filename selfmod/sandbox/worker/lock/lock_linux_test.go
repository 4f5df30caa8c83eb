//go:build amd64 || arm64

package lock

import (
	"slices"
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
)

// TestNames: what the runtime cannot do without has its name in the tables of both
// architectures. That the filter works is tested by the worker's own tests, in a
// process that may be locked down.
func TestNames(t *testing.T) {
	old := []string{"epoll_pwait2", "membarrier", "rseq"} // unknown to old tables; the runtime does without
	for _, info := range []*arch.Info{arch.X86_64, arch.AARCH64} {
		for _, name := range append(slices.Clone(allowed), "clone", "clone3", "tgkill") {
			if _, ok := info.SyscallNames[name]; !ok && !slices.Contains(old, name) {
				t.Errorf("%s has no call %s", info.Name, name)
			}
		}
	}
}

func TestFilter(t *testing.T) {
	f, err := filter()
	if err != nil {
		t.Fatal(err)
	}
	if !f.NoNewPrivs {
		t.Error("the filter leaves new privileges")
	}
	program, err := f.Policy.Assemble()
	if err != nil || len(program) == 0 {
		t.Errorf("%d instructions, %v", len(program), err)
	}
}

func TestABI(t *testing.T) {
	if abi := landlockABI(); abi < 0 || abi > 100 {
		t.Errorf("ABI %d", abi)
	}
}
