package repotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// licences are the texts by which a free licence is known. The order matters
// only for the name in messages.
var licences = []struct {
	name string
	text string // after white space is folded
}{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose"},
	{"BSD", "Redistribution and use in source and binary forms"},
}

// unfree are words that no licence file of a dependency may hold, unless the
// module is excepted.
var unfree = regexp.MustCompile(`(?i)\b(GNU (affero|lesser)? ?general public license|mozilla public license|business source license|functional source license|server side public license)\b`)

// dualLicensed may be taken under a free licence although the file names another.
var dualLicensed = map[string]string{
	"kernel.org/pub/linux/libs/security/libcap/psx": "BSD-3-Clause or GPL-2.0, at the user's choice",
}

// testOnly may carry another licence because the program does not link them.
var testOnly = map[string]string{
	"pgregory.net/rapid": "MPL-2.0; property tests",
}

// licenceFiles are the names under which modules keep their licence.
var licenceFiles = []string{"LICENSE", "LICENSE.md", "LICENSE.txt", "License", "LICENCE", "COPYING", "LICENSE-MIT"}

// TestLicences reads the licence of every module that a build needs out of the
// module cache. The whole program stays MIT, BSD, Apache or ISC.
func TestLicences(t *testing.T) {
	need := requiredModules(t)
	if len(need) == 0 {
		t.Fatal("go.mod requires nothing; the gate has nothing to read")
	}
	args := append([]string{"mod", "download", "-json"}, need...)
	dec := json.NewDecoder(bytes.NewReader(goTool(t, 5*time.Minute, args...)))
	for {
		var m struct{ Path, Version, Dir, Error string }
		if err := dec.Decode(&m); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if m.Error != "" {
			t.Errorf("%s: %s", m.Path, m.Error)
			continue
		}
		if testOnly[m.Path] != "" {
			continue
		}
		if fault := licenceFault(m.Path, m.Dir); fault != "" {
			t.Errorf("%s %s: %s", m.Path, m.Version, fault)
		}
	}
}

// TestTestOnlyModules: what is excused as a test's dependency is in no package's build.
func TestTestOnlyModules(t *testing.T) {
	linked := goTool(t, time.Minute, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./...")
	for _, module := range strings.Fields(string(linked)) {
		if why := testOnly[module]; why != "" {
			t.Errorf("%s (%s) is imported outside tests", module, why)
		}
	}
}

func licenceFault(module, dir string) string {
	for _, name := range licenceFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		folded := strings.Join(strings.Fields(string(text)), " ")
		if m := unfree.FindString(folded); m != "" && dualLicensed[module] == "" {
			return name + " names the " + m + "; only MIT, BSD, Apache-2.0 and ISC may be linked"
		}
		for _, l := range licences {
			if strings.Contains(strings.ToLower(folded), strings.ToLower(l.text)) {
				return ""
			}
		}
		return name + " is none of MIT, BSD, Apache-2.0, ISC"
	}
	return "no licence file (looked for " + strings.Join(licenceFiles, ", ") + ")"
}

// requiredModules are the modules of go.mod, which since module pruning names
// every module that building and testing this one needs.
func requiredModules(t *testing.T) []string {
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(goTool(t, time.Minute, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range mod.Require {
		out = append(out, r.Path+"@"+r.Version)
	}
	return out
}
