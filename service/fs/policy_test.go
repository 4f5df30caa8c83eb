package fs

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// onWrite runs fn when a write is asked about, until the next call.
func onWrite(t *testing.T, w *world, fn func(Write)) {
	t.Helper()
	_, err := WriteIntent.On(w.root, func(ctx context.Context, a Write, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		fn(a)
		return next(ctx)
	}, cordis.Once())
	if err != nil {
		t.Fatal(err)
	}
}

// record notes what a waterfall event is asked, and decides.
func record[T any](t *testing.T, w *world, ev *cordis.Waterfall[T, tool.Decision], asked *[]any, decide func() tool.Decision) {
	t.Helper()
	_, err := ev.On(w.root, func(_ context.Context, a T, _ func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		*asked = append(*asked, a)
		return decide(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPolicy: every method asks, with what it is about to do, and a denial
// changes nothing.
func TestPolicy(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/secret"), "secret")
	put(t, filepath.Join(w.dir, "d/sub/x"), "x")
	link(t, "d", filepath.Join(w.dir, "link"))
	var asked []any
	decision := tool.Deny("not today")
	decide := func() tool.Decision { return decision }
	record(t, w, ReadIntent, &asked, decide)
	record(t, w, WriteIntent, &asked, decide)
	record(t, w, EditIntent, &asked, decide)
	record(t, w, RemoveIntent, &asked, decide)
	record(t, w, MkdirIntent, &asked, decide)
	file, dir := filepath.Join(w.dir, "d/secret"), filepath.Join(w.dir, "d")
	read := func(path string, op ReadOperation) Read { return Read{Path: path, Operation: op, By: "dyn-7"} }
	tests := map[string]struct {
		path Path
		want any
	}{
		"resolve":    {"link/secret", read(file, OpResolve)},
		"stat":       {"link/secret", read(file, OpStat)},
		"lstat":      {"link/secret", read(file, OpLstat)},
		"readText":   {"link/secret", read(file, OpReadText)},
		"readBytes":  {"link/secret", read(file, OpReadBytes)},
		"streamText": {"link/secret", read(file, OpStreamText)},
		"listDir":    {"link", read(dir, OpListDir)},
		"glob":       {"link", read(dir, OpGlob)},
		"watch":      {"link", read(dir, OpWatch)},
		"writeText":  {"link/secret", Write{Path: file, Exists: true, Bytes: 1, Content: "x", By: "dyn-7"}},
		"create":     {"link/new", Write{Path: filepath.Join(dir, "new"), Kind: CreateIfAbsent, Bytes: 1, Content: "x", By: "dyn-7"}},
		"editText":   {"link/secret", EditRequest{Path: file, OldString: "secret", NewString: "b", Whole: Edit{OldString: "secret", NewString: "b"}, By: "dyn-7"}},
		"remove":     {"link/sub", Removal{Path: filepath.Join(dir, "sub"), Recursive: true, By: "dyn-7"}},
		"mkdir":      {"link/m/n", NewFolder{Path: filepath.Join(dir, "m/n"), Recursive: true, By: "dyn-7"}},
	}
	all := methods(w.mounted(7, "dyn-7"))
	if len(all) != len(tests) {
		t.Fatalf("%d methods, %d cases", len(all), len(tests))
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			asked = nil
			wantCode(t, all[name](t.Context(), tt.path), CodePermissionDenied, "not today")
			if diff := cmp.Diff([]any{tt.want}, asked, cmpopts.IgnoreTypes((*Done)(nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
	list, err := filepath.Glob(filepath.Join(w.dir, "d", "*"))
	if err != nil || len(list) != 2 || content(t, file) != "secret" {
		t.Errorf("denied calls changed something: %v, %v", list, err)
	}
	decision = tool.Allow()
	for _, name := range []string{"resolve", "readText", "listDir", "writeText", "create", "remove", "mkdir"} {
		if err := all[name](t.Context(), tests[name].path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPolicyCode: a policy in Go may refuse with a code of its own.
func TestPolicyCode(t *testing.T) {
	w := newWorld(t, Config{})
	_, err := WriteIntent.On(w.root, func(context.Context, Write, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		return tool.Decision{}, &service.Error{Code: CodeNotObserved, Message: "read it first"}
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.fs.WriteText(t.Context(), "file", "x", nil)
	wantCode(t, err, CodeNotObserved, "read it first")
}

func TestObserved(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "file"), "old")
	var got []Observation
	if _, err := Observed.On(w.root, func(_ context.Context, o Observation) { got = append(got, o) }); err != nil {
		t.Fatal(err)
	}
	ctx, f := t.Context(), w.mounted(1, "dyn-1")
	info, err := f.Stat(ctx, "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.ReadText(ctx, "file", nil)
	_, _ = f.ReadText(ctx, "none", nil)
	_, _ = f.ReadBytes(ctx, "file", nil)
	for range f.StreamText(ctx, "file", nil) {
		break
	}
	written, _ := f.WriteText(ctx, "file", "new", nil)
	edited, _ := w.fs.EditText(ctx, "file", Edit{OldString: "new", NewString: "newer"}, nil)
	path := filepath.Join(w.dir, "file")
	read := Observation{Path: path, Version: info.Version, Operation: ObservedRead, By: "dyn-1"}
	want := []Observation{read, read, read, {path, written.Version, ObservedWrite, "dyn-1"}, {path, edited.Version, ObservedEdit, ""}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDone: who was asked about a write learns of the very bytes once they are there,
// before the caller does, and of no write that went wrong.
func TestDone(t *testing.T) {
	w := newWorld(t, Config{})
	path := filepath.Join(w.dir, "file")
	var got []Committed
	note := func(_ context.Context, c Committed) {
		if onDisk := content(t, path); onDisk != c.Content {
			t.Errorf("told of %q while %q is there", c.Content, onDisk)
		}
		got = append(got, c)
	}
	_, err := WriteIntent.On(w.root, func(ctx context.Context, a Write, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		a.Done.Then(note)
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = EditIntent.On(w.root, func(ctx context.Context, a EditRequest, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		a.Done.Then(note)
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := w.fs.WriteText(ctx, "file", "one two", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := w.fs.EditText(ctx, "file", Edit{OldString: "two", NewString: "three"}, nil); err != nil {
		t.Fatal(err)
	}
	_, err = w.fs.WriteText(ctx, "file", "x", &WriteOptions{Kind: CreateIfAbsent})
	wantCode(t, err, CodeExists, "there already")
	_, err = w.fs.EditText(ctx, "file", Edit{OldString: "nowhere", NewString: "x"}, nil)
	wantCode(t, err, CodeEditNotFound, "does not occur")
	before := "one two"
	if diff := cmp.Diff([]Committed{{Content: "one two"}, {Before: &before, Content: "one three"}}, got); diff != "" {
		t.Error(diff)
	}
	(*Done)(nil).Then(note) // takes nothing
}
