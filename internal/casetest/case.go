// Package casetest runs cases against the built program: a fresh dsh mcp over
// standard input and output for each, as any MCP client would drive it. Cases
// are product behaviour written down as data (testdata/cases/*.json).
//
// The file format is a list of cases:
//
//	id, why   name, and what it is about
//	flags     extra arguments of dsh mcp
//	steps     in order
//
// A step is one of:
//
//   - a call: "call" (the tool) with "args" or, for cordis_mount, "code";
//     "args_json" is raw JSON text instead. "@@FILL:n@@" stands for n letters x.
//     An answer is awaited 30 s. A JSON-RPC error counts as an error whose text is
//     its message. Expectations on the answer: "error" (true, false, null for
//     either; absent means false), "has" and "lacks" (substrings of the joined
//     text blocks), "if_error_has", "value" (dotted path in structuredContent to
//     value), "max_ms" (from sending), "max_chars".
//   - "start" (a tag) with a call: sent, not awaited; "await" (the tag) with
//     expectations, later.
//   - "list": the tool list "has", "lacks", holds "only" these, or keeps the
//     "order" of these names.
//   - "sleep_ms".
//
// After the last step the input is closed, and the program has to end with
// status 0 within its two seconds.
package casetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Case is one case of a file.
type Case struct {
	ID    string   `json:"id"`
	Why   string   `json:"why"`
	Flags []string `json:"flags"`
	Steps []Step   `json:"steps"`
}

// Step is one step of a case, of whichever kind.
type Step struct {
	Call     string          `json:"call"`
	Args     json.RawMessage `json:"args"`
	ArgsJSON string          `json:"args_json"`
	Code     *string         `json:"code"`
	Start    string          `json:"start"`
	Await    string          `json:"await"`
	List     bool            `json:"list"`
	SleepMS  int             `json:"sleep_ms"`

	Expectations
}

// Expectations are what a step says about an answer or a list.
type Expectations struct {
	Error      json.RawMessage            `json:"error"`
	Has        []string                   `json:"has"`
	Lacks      []string                   `json:"lacks"`
	IfErrorHas []string                   `json:"if_error_has"`
	Value      map[string]json.RawMessage `json:"value"`
	MaxMS      int                        `json:"max_ms"`
	MaxChars   int                        `json:"max_chars"`
	Only       bool                       `json:"only"`
	Order      []string                   `json:"order"`
}

// Load reads a file of cases. A member it does not know is an error: an
// expectation that nobody checks is worse than none.
func Load(name string) ([]Case, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("load cases: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var cases []Case
	if err := dec.Decode(&cases); err != nil {
		return nil, fmt.Errorf("load cases of %s: %w", name, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("load cases of %s: text after the list", name)
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if c.ID == "" || seen[c.ID] {
			return nil, fmt.Errorf("load cases of %s: id %q is empty or not unique", name, c.ID)
		}
		seen[c.ID] = true
		for i, s := range c.Steps {
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("load case %s, step %d: %w", c.ID, i+1, err)
			}
		}
	}
	return cases, nil
}

// check says what makes a step ambiguous.
func (s *Step) check() error {
	kinds := 0
	for _, is := range []bool{s.Call != "", s.Await != "", s.List, s.SleepMS > 0} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("it must be exactly one of call, await, list and sleep_ms, and is %d of them", kinds)
	}
	if s.Start != "" && s.Call == "" {
		return errors.New("start needs a call")
	}
	return nil
}

var fill = regexp.MustCompile(`@@FILL:(\d+)@@`)

// expand replaces each @@FILL:n@@ by n letters x.
func expand(s string) string {
	return fill.ReplaceAllStringFunc(s, func(m string) string {
		n, err := strconv.Atoi(fill.FindStringSubmatch(m)[1])
		if err != nil {
			return m
		}
		return strings.Repeat("x", n)
	})
}

// arguments is the JSON text that the step sends, on one line.
func (s *Step) arguments() (json.RawMessage, error) {
	switch {
	case s.ArgsJSON != "":
		return oneLine(expand(s.ArgsJSON)), nil
	case s.Code != nil:
		args, err := json.Marshal(map[string]string{"code": expand(*s.Code)})
		if err != nil {
			return nil, fmt.Errorf("encode code: %w", err)
		}
		return args, nil
	case s.Args != nil:
		return oneLine(expand(string(s.Args))), nil
	}
	return json.RawMessage("{}"), nil
}

// oneLine takes white space out of JSON, since a frame is a line; what is no
// JSON stays as it is.
func oneLine(text string) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, []byte(text)) != nil {
		return json.RawMessage(text)
	}
	return b.Bytes()
}
