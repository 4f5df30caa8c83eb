package shell

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestAgainstBash: of lines at random, made of what is hard to read, bash does not
// write what the analyser says is not written. What could is touch, and a redirection.
func TestAgainstBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("compares with the real bash, which is not installed")
	}
	pieces := []string{
		"ls ", "echo ", "cat ", "true ", "touch y", "touch y", "$(touch y)", "`touch y`", "\\", "\n", "'", "\"", "`", "$(", ")", "#", " #", "<<E\n", "<<'E'\n",
		"<<-E\n", "<<\\E\n", "\nE\n", "E", ";", " & ", "|", "&&", "{ ", "; }", "(", "[[ ", " ]]", "x", "=", "$x", "${x:-", "}", "$'", "$\"", "<(", "@(", "case x in ", " esac",
		"if ", "; then ", "; fi", "! ", "*", "\t", "\\\n", "$((", "))", "x) ", ";;", " =~ ", " == ", "-v ", "time ", "a[", "]", "\\'", "\\\"", "\\`", "\\$", "<<<", "eval ", "bash -c ", "\x01", "ü", "!(", "1", "+",
		"> y", ">y", "1>&2", "&>", "$", "(", "sh -c '", "printf ", "sort ", "sed ", "--", "\x0b", "\xff",
	}
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	dir := t.TempDir()
	ran := 0
	for end := time.Now().Add(duration()); time.Now().Before(end); {
		var b strings.Builder
		b.WriteString(reading[r.IntN(len(reading))])
		if r.IntN(2) == 0 {
			b.Reset()
		}
		for range 1 + r.IntN(9) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		line := b.String()
		if ok, _ := Parse(line).ReadOnly(); !ok || !strings.Contains(line, "y") {
			continue
		}
		ran++
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		cmd := exec.CommandContext(ctx, bash, "-c", line)
		cmd.Dir = dir
		_ = cmd.Run() // most are wrong
		cancel()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Fatalf("bash wrote %v at %q, which was called read-only", entries, line)
		}
	}
	t.Logf("%d lines", ran)
}

// duration is how long it goes on: DSH_TEST_SHELL, or a second.
func duration() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DSH_TEST_SHELL")); err == nil {
		return d
	}
	return time.Second
}
