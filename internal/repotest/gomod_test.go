package repotest

import (
	"encoding/json"
	"testing"
	"time"
)

// TestGoMod: anyone with the released Go 1.26 builds this module as it stands.
// A toolchain line would download another Go; a replace does not hold for those
// who import the module.
func TestGoMod(t *testing.T) {
	var mod struct {
		Module    struct{ Path string }
		Go        string
		Toolchain string
		Replace   []struct{ Old, New struct{ Path string } }
	}
	if err := json.Unmarshal(goTool(t, time.Minute, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	if mod.Module.Path != modulePath {
		t.Errorf("module %q, want %q", mod.Module.Path, modulePath)
	}
	if mod.Go != "1.26" && mod.Go != "1.26.0" {
		t.Errorf("go %q, want 1.26 or 1.26.0, as dependencies spell it (any 1.26 builds it)", mod.Go)
	}
	if mod.Toolchain != "" {
		t.Errorf("toolchain %q: leave the line out", mod.Toolchain)
	}
	for _, r := range mod.Replace {
		t.Errorf("replace %s => %s: depend on a released version", r.Old.Path, r.New.Path)
	}
}
