package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// openFlags keep an open from waiting for the other end of a pipe.
const openFlags = syscall.O_NONBLOCK

// readStep is how much is read between two looks at the call's context.
const readStep = 256 << 10

// ReadText implements ForPlugins.
func (p *plugin) ReadText(ctx context.Context, target Path, _ *CallOptions) (string, error) {
	k := p.call(ctx, "readText", target)
	f, at, err := p.openFile(k, target)
	if err != nil {
		return "", err
	}
	defer at.close()
	defer done(f)
	data, err := readAll(k, f, at.info.Size(), limits.FSText)
	if err != nil {
		return "", err
	}
	if err := checkText(k, data, 0); err != nil {
		return "", err
	}
	p.observed(k, at.abs, version(at.info), ObservedRead)
	return unsafe.String(unsafe.SliceData(data), len(data)), nil // nobody else has data
}

// ReadBytes implements ForPlugins.
func (p *plugin) ReadBytes(ctx context.Context, target Path, o *ReadBytesOptions) ([]byte, error) {
	k := p.call(ctx, "readBytes", target)
	if o == nil {
		o = &ReadBytesOptions{}
	}
	if o.Offset < 0 || o.Length != nil && *o.Length < 0 {
		return nil, k.fail(CodeInvalidArgument, "offset and length cannot be negative")
	}
	if o.Length != nil && *o.Length > limits.FSBytes {
		return nil, k.fail(CodeTooLarge, "length is %d; at most %d bytes are read at once", *o.Length, limits.FSBytes)
	}
	f, at, err := p.openFile(k, target)
	if err != nil {
		return nil, err
	}
	defer at.close()
	defer done(f)
	if o.Offset > 0 {
		// Beyond what the file system can address, seeking fails; nothing is there either.
		if _, err := f.Seek(o.Offset, io.SeekStart); err != nil && o.Offset <= at.info.Size() {
			return nil, k.wrap(err)
		} else if err != nil {
			o = &ReadBytesOptions{Offset: o.Offset, Length: new(int64)}
		}
	}
	size := max(at.info.Size()-o.Offset, 0)
	var from io.Reader = f
	if o.Length != nil {
		from, size = io.LimitReader(f, *o.Length), min(size, *o.Length)
	}
	data, err := readAll(k, from, size, limits.FSBytes)
	if err != nil {
		return nil, err
	}
	p.observed(k, at.abs, version(at.info), ObservedRead)
	return data, nil
}

// StreamText implements ForPlugins.
func (p *plugin) StreamText(ctx context.Context, target Path, _ *CallOptions) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		k := p.call(ctx, "streamText", target)
		f, at, err := p.openFile(k, target)
		if err != nil {
			yield("", err)
			return
		}
		defer at.close()
		defer done(f)
		p.observed(k, at.abs, version(at.info), ObservedRead)
		stream(k, f, yield)
	}
}

// stream gives the text of r in pieces.
func stream(k *call, r io.Reader, yield func(string, error) bool) {
	buf := make([]byte, limits.FSPiece)
	held, offset := 0, int64(0) // bytes in buf that were not given yet; their place in the file
	for {
		if err := k.ctx.Err(); err != nil {
			yield("", k.wrap(err))
			return
		}
		n, err := io.ReadFull(r, buf[held:])
		held += n
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			yield("", k.wrap(err))
			return
		}
		cut := held
		if !end {
			cut = pieceEnd(buf[:held])
		}
		if err := checkText(k, buf[:cut], offset); err != nil {
			yield("", err)
			return
		}
		if cut > 0 && !yield(string(buf[:cut]), nil) || end {
			return
		}
		offset += int64(cut)
		held = copy(buf, buf[cut:held])
	}
}

// pieceEnd is where a full buffer is cut: after its last line, or else where no
// character is cut. Of what is not UTF-8 it takes everything.
func pieceEnd(b []byte) int {
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	return len(b) - plain.Torn(b)
}

// done closes what was only read: its end can tell nothing new.
func done(c io.Closer) { _ = c.Close() }

// openFile opens a regular file for reading: the one that was looked at, in its
// folder. One that is replaced meanwhile is looked for again.
func (p *plugin) openFile(k *call, target Path) (*os.File, *place, error) {
	asked := ""
	for range limits.FSLinks {
		at, err := p.walk(k, target, "", true)
		if err != nil {
			return nil, nil, err
		}
		f, err := p.openAt(at, &asked)
		if err == nil {
			return f, at, nil
		}
		at.close()
		if !errors.Is(err, errAgain) {
			return nil, nil, k.wrap(err)
		}
	}
	return nil, nil, k.wrap(errAgain)
}

func (p *plugin) openAt(at *place, asked *string) (*os.File, error) {
	if at.info == nil {
		return nil, fs.ErrNotExist
	}
	if err := regular(at); err != nil {
		return nil, err
	}
	if *asked != at.abs {
		if err := p.mayRead(at); err != nil {
			return nil, err
		}
		*asked = at.abs
	}
	return openRegular(at)
}

// regular refuses what is not a file.
func regular(at *place) error {
	switch typeOf(at.info) {
	case TypeFile:
		return nil
	case TypeDirectory:
		return at.call.fail(CodeNotRegularFile, "it is a folder, not a file; listDir() lists it")
	}
	return at.call.fail(CodeNotRegularFile, "it is a pipe, socket, device or link, not a file")
}

// openRegular opens the file at a place, if it is still the one that was looked
// at (else errAgain), and looks at it anew.
func openRegular(at *place) (*os.File, error) {
	f, err := at.dir.OpenFile(at.name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		if now, lerr := at.dir.Lstat(at.name); lerr != nil || !os.SameFile(now, at.info) {
			return nil, errAgain
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(info, at.info) {
		err = errAgain
	}
	if err != nil {
		done(f)
		return nil, err
	}
	at.info = info
	return f, nil
}

// readAll reads to the end, but not more than max bytes; size is a guess.
func readAll(k *call, r io.Reader, size, max int64) ([]byte, error) {
	if size > max {
		return nil, k.tooLarge(size, max)
	}
	data := make([]byte, 0, size+1)
	for {
		if err := k.ctx.Err(); err != nil {
			return nil, k.wrap(err)
		}
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		n, err := r.Read(data[len(data):min(cap(data), len(data)+readStep)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, k.wrap(err)
		}
		if int64(len(data)) > max {
			return nil, k.tooLarge(int64(len(data)), max)
		}
	}
}

func (k *call) tooLarge(size, max int64) error {
	return k.fail(CodeTooLarge, "it has %d bytes or more; at most %d are taken at once. Read it in pieces with streamText(), or a part with readBytes() and its offset and length", size, max)
}

// checkText refuses what is not text; offset is where data begins in the file.
func checkText(k *call, data []byte, offset int64) error {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return k.fail(CodeNotText, "it is not text: byte %d is NUL; read it with readBytes()", offset+int64(i))
	}
	if utf8.Valid(data) {
		return nil
	}
	i := 0
	for i < len(data) {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return k.fail(CodeNotText, "it is not UTF-8 text, from byte %d on; read it with readBytes(), and decode it with the encoding that it has", offset+int64(i))
}
