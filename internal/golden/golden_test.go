package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that notes how it fails.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func TestCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	compare := func(got string, write bool) string {
		before := *update
		*update = write
		defer func() { *update = before }()
		r, done := &recorder{TB: t}, make(chan struct{})
		go func() {
			defer close(done)
			Compare(r, "a.golden", got)
		}()
		<-done
		return r.said
	}
	if said := compare("one\n", false); !strings.Contains(said, "go test -update") {
		t.Errorf("without the file: %q", said)
	}
	if said := compare("one\n", true); said != "" {
		t.Errorf("while it is written: %q", said)
	}
	if said := compare("one\n", false); said != "" {
		t.Errorf("the same: %q", said)
	}
	if said := compare("two\n", false); !strings.Contains(said, "one") || !strings.Contains(said, "two") || !strings.Contains(said, "go test -update") {
		t.Errorf("another text: %q", said)
	}
	if text, err := os.ReadFile(filepath.Join("testdata", "a.golden")); err != nil || string(text) != "one\n" {
		t.Errorf("the file: %q, %v", text, err)
	}
}
