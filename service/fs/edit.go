package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// EditText implements ForPlugins.
func (p *plugin) EditText(ctx context.Context, target Path, edit Edit, o *EditOptions) (Edited, error) {
	k := p.call(ctx, "editText", target)
	expected := ""
	if o != nil {
		expected = o.Version
	}
	edit.OldString, edit.NewString = toLF(edit.OldString), toLF(edit.NewString)
	if err := checkEdit(k, edit); err != nil {
		return Edited{}, err
	}
	at, err := p.walk(k, target, "", true)
	if err != nil {
		return Edited{}, err
	}
	defer at.close()
	done := new(Done)
	if err := p.mayEdit(at, edit, expected, done); err != nil {
		return Edited{}, err
	}
	unlock, err := p.lock(k, at.abs)
	if err != nil {
		return Edited{}, err
	}
	defer unlock()
	out, committed, err := at.edit(edit, expected)
	if err != nil {
		return Edited{}, k.wrap(err)
	}
	unlock()
	done.tell(ctx, committed)
	p.observed(k, at.abs, out.Version, ObservedEdit)
	return out, nil
}

func checkEdit(k *call, e Edit) error {
	switch e.OldString {
	case "":
		return k.fail(CodeInvalidArgument, "oldString is empty; give the text to replace, or write the whole file with writeText()")
	case e.NewString:
		return k.fail(CodeInvalidArgument, "oldString and newString are the same, so there is nothing to change")
	}
	if err := checkContent(k, "oldString", e.OldString, limits.FSEdit); err != nil {
		return err
	}
	return checkContent(k, "newString", e.NewString, limits.FSEdit)
}

func (p *plugin) mayEdit(at *place, e Edit, expected string, done *Done) error {
	if at.info == nil {
		return at.call.fail(CodeNotFound, "there is no such file; create it with writeText()")
	}
	if err := regular(at); err != nil {
		return err
	}
	if err := p.writable(at); err != nil {
		return err
	}
	return ask(at.call, p.provider(), EditIntent, EditRequest{
		Path: at.abs, OldString: plain.Cut(e.OldString, limits.ErrorText), NewString: plain.Cut(e.NewString, limits.ErrorText),
		ReplaceAll: e.ReplaceAll, Version: expected, Whole: e, Done: done, By: p.by,
	})
}

// edit does it, with the path locked.
func (p *place) edit(e Edit, expected string) (Edited, Committed, error) {
	k := p.call
	if err := p.look(); err != nil {
		return Edited{}, Committed{}, err
	}
	if p.info == nil {
		return Edited{}, Committed{}, fs.ErrNotExist
	}
	if err := p.openable(); err != nil {
		return Edited{}, Committed{}, err
	}
	if expected == "" {
		// Changes from now on are to be told from the ones before.
		if _, err := p.settled(); err != nil {
			return Edited{}, Committed{}, err
		}
	}
	seen := version(p.info)
	f, err := openRegular(p)
	if errors.Is(err, errAgain) || err == nil && version(p.info) != seen {
		if err == nil {
			done(f)
		}
		return Edited{}, Committed{}, k.stale("someone else is changing it at this moment")
	}
	if err != nil {
		return Edited{}, Committed{}, err
	}
	defer done(f)
	if expected != "" && seen != expected {
		return Edited{}, Committed{}, k.stale("it is not at version %s; it is at %q now", quoted(expected), seen)
	}
	data, err := readAll(k, f, p.info.Size(), limits.FSText)
	if err != nil {
		return Edited{}, Committed{}, err
	}
	if err := checkText(k, data, 0); err != nil {
		return Edited{}, Committed{}, err
	}
	before := string(data)
	after, count, refused := replace(before, e)
	if refused != nil {
		return Edited{}, Committed{}, k.fail(refused.code, "%s", refused.text)
	}
	if err := checkContent(k, "the file after the edit", after, limits.FSText); err != nil {
		return Edited{}, Committed{}, err
	}
	out := Edited{Replacements: count}
	if out.Version, err = p.put(after, expectSame); err != nil {
		return Edited{}, Committed{}, err
	}
	var cutBefore, cutAfter bool
	out.Before, cutBefore = echo(before)
	out.After, cutAfter = echo(after)
	out.Truncated = cutBefore || cutAfter
	return out, Committed{Before: &before, Content: after}, nil
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// refusal is why an edit cannot be done.
type refusal struct{ code, text string }

// replace does an edit, whose texts have LF, on a text with any line endings.
func replace(data string, e Edit) (after string, count int, refused *refusal) {
	text := toLF(data)
	crlf := len(data) - len(text)
	insert := e.NewString
	if crlf > strings.Count(text, "\n")-crlf {
		insert = strings.ReplaceAll(insert, "\n", "\r\n")
	}
	if !e.ReplaceAll {
		if found := places(text, e.OldString); len(found) > 1 {
			return "", 0, &refusal{CodeAmbiguousEdit, fmt.Sprintf(
				"oldString occurs more than once, at %s. Add lines before or after it until it occurs once, or set replaceAll: true", lines(text, found))}
		}
	}
	var b strings.Builder
	at := cursor{data: data}
	for next := 0; ; count++ {
		i := strings.Index(text[next:], e.OldString)
		if i < 0 {
			break
		}
		b.WriteString(at.to(next + i))
		b.WriteString(insert)
		next += i + len(e.OldString)
		at.to(next)
		if b.Len() > limits.FSText {
			return "", 0, &refusal{CodeTooLarge, fmt.Sprintf("the file would have more than %d bytes after the edit", limits.FSText)}
		}
	}
	if count == 0 {
		return "", 0, &refusal{CodeEditNotFound, notFound(text, e.OldString)}
	}
	b.WriteString(data[at.raw:])
	return b.String(), count, nil
}

// cursor walks a text with any line endings by offsets in the same text with LF.
type cursor struct {
	data    string
	raw, lf int
}

// to moves to an offset and gives what it passed.
func (c *cursor) to(lf int) string {
	start := c.raw
	for c.lf < lf {
		if strings.HasPrefix(c.data[c.raw:], "\r\n") {
			c.raw++
		}
		c.raw++
		c.lf++
	}
	return c.data[start:c.raw]
}

// shownLines is how many line numbers a message names.
const shownLines = 8

// places finds the first places where old occurs. Those that overlap count as
// well, since any of them could be meant.
func places(text, old string) []int {
	var out []int
	for at := 0; len(out) <= shownLines; {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		out = append(out, at+i)
		at += i + 1
	}
	return out
}

// lines names the lines of offsets.
func lines(text string, offsets []int) string {
	var shown []string
	line, at := 1, 0
	for i, off := range offsets {
		if i == shownLines {
			shown = append(shown, "…")
			break
		}
		line += strings.Count(text[at:off], "\n")
		at = off
		if n := fmt.Sprint(line); len(shown) == 0 || shown[len(shown)-1] != n {
			shown = append(shown, n)
		}
	}
	if len(shown) == 1 {
		return "line " + shown[0]
	}
	return "lines " + strings.Join(shown, ", ")
}

// hintBytes is the size of texts beyond which a message looks for no likeness.
const hintBytes = 1 << 20

// notFound says what is like the text that was not found.
func notFound(text, old string) string {
	const again = "Copy the text exactly from the file as it is now"
	if text == "" {
		return "oldString does not occur: the file is empty; write it with writeText()"
	}
	if len(text) > hintBytes || len(old) > hintBytes/100 {
		return "oldString does not occur in the file. " + again
	}
	want := trimmed(old)
	have := trimmed(text)
	for len(want) > 1 && want[0] == "" {
		want = want[1:]
	}
	for len(want) > 1 && want[len(want)-1] == "" {
		want = want[:len(want)-1]
	}
	if want[0] == "" {
		return "oldString does not occur in the file. " + again
	}
	var first []string
	for i := range have {
		if have[i] != want[0] {
			continue
		}
		n := 1
		for n < len(want) && i+n < len(have) && have[i+n] == want[n] {
			n++
		}
		if n == len(want) {
			return fmt.Sprintf("oldString does not occur in the file, but with other white space it does, at line %d. %s", i+1, again)
		}
		if len(first) < shownLines {
			first = append(first, fmt.Sprintf("%d (line %d differs)", i+1, i+n+1))
		}
	}
	if len(first) > 0 {
		return fmt.Sprintf("oldString does not occur in the file. Its first line does, at line %s. %s", strings.Join(first, ", "), again)
	}
	return fmt.Sprintf("oldString does not occur in the file, which has %d lines, nor does its first line. %s", strings.Count(text, "\n")+1, again)
}

// trimmed gives the lines of a text without white space around them.
func trimmed(s string) []string {
	out := strings.Split(s, "\n")
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}
