package casetest

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain removes the program after the last test. With fakeEnv set the test
// binary is the program of a case.
func TestMain(m *testing.M) {
	if os.Getenv(fakeEnv) != "" {
		os.Exit(fakeProgram(os.Stdin, os.Stdout))
	}
	code := m.Run()
	Clean()
	os.Exit(code)
}

// atOnce is how many cases run at the same time: each is a process with a
// worker, and their answers are timed.
const atOnce = 4

// TestCases runs every case of testdata/cases.
func TestCases(t *testing.T) {
	names, err := filepath.Glob("../../testdata/cases/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("no cases found")
	}
	slots := make(chan struct{}, atOnce)
	for _, name := range names {
		cases, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				Run(t, Program(t), c)
			})
		}
	}
}
