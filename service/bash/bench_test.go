package bash_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/dsh-go/dsh/service/bash"
)

// BenchmarkRun is one run of a small command: with the supervisor, with a
// supervisor of another program (DSH_BENCH_PROGRAM), with the process group alone,
// and bash without anything around it.
func BenchmarkRun(b *testing.B) {
	for _, x := range []struct {
		name string
		cfg  bash.Config
	}{
		{"supervisor", bash.Config{}},
		{"program", bash.Config{Program: os.Getenv("DSH_BENCH_PROGRAM")}},
		{"group", bash.Config{NoSupervisor: true}},
	} {
		b.Run(x.name, func(b *testing.B) {
			if x.name == "program" && x.cfg.Program == "" {
				b.Skip("DSH_BENCH_PROGRAM is not set")
			}
			r := newRig(b, x.cfg)
			use, _ := r.plugin("dyn-1")
			b.ReportAllocs()
			for b.Loop() {
				got, err := use.Run(context.Background(), line("true"), nil)
				if err != nil || got.ExitCode == nil || *got.ExitCode != 0 {
					b.Fatal(got, err)
				}
			}
		})
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("bash", "-c", "true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkOutput is 100 MB of output through a pipe, its end kept, 64 MiB in a file.
func BenchmarkOutput(b *testing.B) {
	r := newRig(b, bash.Config{})
	use, _ := r.plugin("dyn-1")
	b.SetBytes(100_000_000)
	for b.Loop() {
		if _, err := use.Run(context.Background(), line("head -c 100000000 /dev/zero"), nil); err != nil {
			b.Fatal(err)
		}
	}
}
