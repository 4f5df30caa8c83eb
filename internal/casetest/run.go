package casetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// answerWithin is how long an answer is awaited; closeWithin how long the
// program may take to end, with some slack for a busy machine.
const (
	answerWithin = 30 * time.Second
	closeWithin  = 3 * time.Second
)

// Run runs one case against the program and reports every expectation that
// does not hold. It stops at a step that got no answer.
func Run(t *testing.T, program string, c Case) {
	t.Helper()
	client, err := Start(t.Context(), program, append([]string{"mcp"}, c.Flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	started := map[string]func(context.Context) (Answer, error){}
	for i, s := range c.Steps {
		where := fmt.Sprintf("step %d (%s)", i+1, s.describe())
		faults, err := client.step(t.Context(), s, started)
		for _, f := range faults {
			t.Errorf("%s: %s", where, f)
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
			break
		}
	}
	if err := client.Close(closeWithin); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("%s\nstandard error of dsh %s:\n%s", c.Why, strings.Join(c.Flags, " "), client.Stderr())
	}
}

func (s *Step) describe() string {
	switch {
	case s.Await != "":
		return "await " + s.Await
	case s.List:
		return "list"
	case s.SleepMS > 0:
		return "sleep"
	case s.Code != nil:
		return fmt.Sprintf("%s %.60q", s.Call, *s.Code)
	}
	return fmt.Sprintf("%s %.60s", s.Call, s.Args)
}

func (c *Client) step(ctx context.Context, s Step, started map[string]func(context.Context) (Answer, error)) (faults []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	switch {
	case s.SleepMS > 0:
		time.Sleep(time.Duration(s.SleepMS) * time.Millisecond)
		return nil, nil
	case s.List:
		names, err := c.Tools(ctx)
		if err != nil {
			return nil, err
		}
		return s.checkList(names), nil
	}
	wait := started[s.Await]
	if s.Call != "" {
		args, err := s.arguments()
		if err != nil {
			return nil, err
		}
		if wait, err = c.Call(s.Call, args); err != nil {
			return nil, err
		}
		if s.Start != "" {
			started[s.Start] = wait
			return nil, nil
		}
	}
	if wait == nil {
		return nil, fmt.Errorf("no call was started as %q", s.Await)
	}
	answer, err := wait(ctx)
	if err != nil {
		return nil, err
	}
	return s.checkAnswer(answer), nil
}

func (e *Expectations) checkList(names []string) (faults []string) {
	for _, want := range e.Has {
		if !slices.Contains(names, want) {
			faults = append(faults, fmt.Sprintf("the list has no %s: %q", want, names))
		}
	}
	for _, not := range e.Lacks {
		if slices.Contains(names, not) {
			faults = append(faults, fmt.Sprintf("the list has %s: %q", not, names))
		}
	}
	if e.Only && len(names) != len(e.Has) {
		faults = append(faults, fmt.Sprintf("the list has more than %q: %q", e.Has, names))
	}
	at := -1
	for _, name := range e.Order {
		i := slices.Index(names, name)
		if i <= at {
			faults = append(faults, fmt.Sprintf("the list does not keep the order %q: %q", e.Order, names))
			break
		}
		at = i
	}
	return faults
}

func (e *Expectations) checkAnswer(a Answer) (faults []string) {
	shown := a.Text
	if utf8.RuneCountInString(shown) > 3000 {
		shown = string([]rune(shown)[:3000]) + "…"
	}
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf(format, args...)+fmt.Sprintf("; got isError %t after %s:\n%s", a.IsError, a.Took.Round(time.Millisecond), shown))
	}
	if want := e.wantError(); want != nil && *want != a.IsError {
		fault("want isError %t", *want)
	}
	for _, want := range e.Has {
		if !strings.Contains(a.Text, want) {
			fault("want %q", want)
		}
	}
	for _, not := range e.Lacks {
		if strings.Contains(a.Text, not) {
			fault("do not want %q", not)
		}
	}
	if a.IsError {
		for _, want := range e.IfErrorHas {
			if !strings.Contains(a.Text, want) {
				fault("want %q in an error", want)
			}
		}
	}
	for path, want := range e.Value {
		if got, ok := lookup(a.Structured, path); !ok || !sameJSON(got, want) {
			fault("want %s = %s, have %s in %s", path, want, got, a.Structured)
		}
	}
	if limit := time.Duration(e.MaxMS) * time.Millisecond; limit > 0 && a.Took > limit {
		fault("want an answer within %s", limit)
	}
	if n := utf8.RuneCountInString(a.Text); e.MaxChars > 0 && n > e.MaxChars {
		fault("want at most %d characters, have %d", e.MaxChars, n)
	}
	return faults
}

// wantError is the expected isError, or nil for either.
func (e *Expectations) wantError() *bool {
	no := false
	if e.Error == nil {
		return &no
	}
	var want *bool
	if json.Unmarshal(e.Error, &want) != nil {
		return &no
	}
	return want
}

// lookup follows a dotted path through objects and arrays.
func lookup(value json.RawMessage, path string) (json.RawMessage, bool) {
	for key := range strings.SplitSeq(path, ".") {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		if json.Unmarshal(value, &object) == nil && object != nil {
			value = object[key]
		} else if i, err := strconv.Atoi(key); err == nil && json.Unmarshal(value, &array) == nil && i >= 0 && i < len(array) {
			value = array[i]
		} else {
			return nil, false
		}
		if value == nil {
			return nil, false
		}
	}
	return value, true
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return bytes.Equal(a, b)
	}
	return reflect.DeepEqual(x, y)
}
