package session

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// Line returns the header, the first line of a log, without its newline.
func (m Meta) Line() string {
	members := []lossless.Member{
		lossless.M("type", lossless.Str("session")),
		lossless.M("version", lossless.Int(FormatVersion)),
		lossless.M("id", lossless.Str(m.ID)),
		lossless.M("createdAt", lossless.Int(m.CreatedAt)),
	}
	for _, f := range []struct {
		key string
		v   string
	}{{"cwd", m.Cwd}, {"parentSession", m.ParentSession}} {
		if f.v != "" {
			members = append(members, lossless.M(f.key, lossless.Str(f.v)))
		}
	}
	if m.SeedLength > 0 {
		members = append(members, lossless.M("seedLength", lossless.Int(m.SeedLength)))
	}
	if m.Origin != "" {
		members = append(members, lossless.M("origin", lossless.Str(m.Origin)))
	}
	members = append(members, lossless.M("delegationDepth", lossless.Int(int64(m.DelegationDepth))))
	if m.AgentPreset != "" {
		members = append(members, lossless.M("agentPreset", lossless.Str(m.AgentPreset)))
	}
	return lossless.Obj(members...).String()
}

// maxHeader bounds a header's line.
const maxHeader = 64 << 10

// ParseHeader reads the first line of a log. A version beyond FormatVersion is
// ErrNewer, whatever else the line holds; anything wrong is ErrCorrupt.
func ParseHeader(line string) (Meta, error) {
	if len(line) > maxHeader {
		return Meta{}, fmt.Errorf("%w: line 1: the header has %d bytes; at most %d are taken", ErrCorrupt, len(line), maxHeader)
	}
	v, err := lossless.Parse([]byte(line))
	if err != nil {
		return Meta{}, fmt.Errorf("%w: line 1: not a session's header: %w", ErrCorrupt, err)
	}
	kind, _ := v.Get("type")
	version, _ := v.Get("version")
	n, isInt := version.Int64()
	if kind.Str() != "session" || !isInt || n < 1 {
		return Meta{}, fmt.Errorf(`%w: line 1: not a session's header, which begins {"type":"session","version":%d}`, ErrCorrupt, FormatVersion)
	}
	if n > FormatVersion {
		return Meta{}, fmt.Errorf("%w: its format is %d, this program reads up to %d; use the newer program", ErrNewer, n, FormatVersion)
	}
	var m Meta
	var depth int64
	texts := map[string]*string{"id": &m.ID, "cwd": &m.Cwd, "parentSession": &m.ParentSession, "origin": &m.Origin, "agentPreset": &m.AgentPreset}
	counts := map[string]*int64{"createdAt": &m.CreatedAt, "seedLength": &m.SeedLength, "delegationDepth": &depth}
	for key, member := range v.Members() {
		if into, ok := texts[key]; ok {
			if member.Kind() != lossless.String {
				return Meta{}, fmt.Errorf("%w: line 1: %s is not a text", ErrCorrupt, key)
			}
			*into = member.Str()
		} else if into, ok := counts[key]; ok {
			if err := readCount(member, into); err != nil {
				return Meta{}, fmt.Errorf("%w: line 1: %s: %w", ErrCorrupt, key, err)
			}
		} else if key != "type" && key != "version" {
			return Meta{}, fmt.Errorf("%w: line 1: a header has no member %q", ErrCorrupt, plain.Name(key))
		}
	}
	m.DelegationDepth = int(min(depth, 1<<31-1))
	if err := m.Check(); err != nil {
		return Meta{}, fmt.Errorf("%w: line 1: %w", ErrCorrupt, err)
	}
	return m, nil
}

// Decode reads a log: the header and one event on each line. kept is the number
// of bytes of whole lines; what follows them is a line that was not written to
// its end, and is left out. A line that is not the event that comes next is
// ErrCorrupt, with the line's number, wherever it is.
//
// The lines of attachments at the end of an export are passed to attach, or
// refused where it is nil.
func Decode(text string, attach func(message.Attachment, []byte) error) (l *Log, kept int64, err error) {
	line, rest, ok := strings.Cut(text, "\n")
	if !ok {
		return nil, 0, fmt.Errorf("%w: line 1: the header is not whole", ErrCorrupt)
	}
	meta, err := ParseHeader(line)
	if err != nil {
		return nil, 0, err
	}
	l = newLog(meta)
	l.events = make([]Event, 0, strings.Count(rest, "\n"))
	kept = int64(len(line)) + 1
	for number := 2; ; number++ {
		line, after, ok := strings.Cut(rest, "\n")
		if !ok {
			return l, kept, nil
		}
		if attach != nil && strings.HasPrefix(line, attachmentHead) {
			a, data, err := parseAttachment(line)
			if err == nil {
				err = attach(a, data)
			}
			if err != nil {
				return nil, kept, fmt.Errorf("%w: line %d: %w", ErrCorrupt, number, err)
			}
		} else if err := l.decodeLine(line); err != nil {
			return nil, kept, fmt.Errorf("%w: line %d: %w", ErrCorrupt, number, err)
		}
		kept += int64(len(line)) + 1
		rest = after
	}
}

func (l *Log) decodeLine(line string) error {
	e, data, err := parseEvent(line)
	if err != nil {
		return err
	}
	if err := l.admit(e, &data); err != nil {
		return fmt.Errorf("event %d (%s): %w", e.Seq, e.Type, err)
	}
	l.events = append(l.events, e)
	return nil
}

const attachmentHead = `{"type":"attachment",`

// WriteExport writes the lines of an export: the header, the log's events, and
// the attachments with these hashes, which load returns.
func WriteExport(w io.Writer, l *Log, hashes []string, load func(hash string) ([]byte, error)) error {
	if err := writeLine(w, l.meta.Line()); err != nil {
		return err
	}
	for _, e := range l.tail(0) {
		if err := writeLine(w, e.line); err != nil {
			return err
		}
	}
	for _, hash := range hashes {
		data, err := load(hash)
		if err != nil {
			return err
		}
		err = writeLine(w, lossless.Obj(
			lossless.M("type", lossless.Str("attachment")),
			lossless.M("sha256", lossless.Str(hash)),
			lossless.M("size", lossless.Int(int64(len(data)))),
			lossless.M("data", lossless.Str(base64.StdEncoding.EncodeToString(data))),
		).String())
		if err != nil {
			return err
		}
	}
	return nil
}

func writeLine(w io.Writer, line string) error {
	_, err := io.WriteString(w, line+"\n")
	return err
}

func parseAttachment(line string) (message.Attachment, []byte, error) {
	if len(line) > limits.SessionAttachment*2 {
		return message.Attachment{}, nil, errors.New("the attachment is too big")
	}
	v, err := lossless.Parse([]byte(line))
	if err != nil {
		return message.Attachment{}, nil, err
	}
	hash, _ := v.Get("sha256")
	encoded, _ := v.Get("data")
	data, err := base64.StdEncoding.DecodeString(encoded.Str())
	if err != nil || encoded.Kind() != lossless.String {
		return message.Attachment{}, nil, errors.New("the data of an attachment is base64")
	}
	return message.Attachment{Hash: hash.Str(), Size: int64(len(data))}, data, CheckAttachment(hash.Str(), data)
}
