package yaml

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// inline reads a scalar or a flow collection at pos. Further lines of it are
// indented more than n.
func (p *parser) inline(n int) *Node {
	switch c := p.src[p.pos]; c {
	case '[', '{':
		node := p.flow(n)
		if p.fault == nil {
			p.noColon("a list or map in brackets")
		}
		return node
	case '"', '\'':
		node := p.quoted(n)
		if p.fault == nil {
			p.noColon("a key of several lines")
		}
		return node
	case '|', '>':
		if !p.single {
			return p.text(n)
		}
	}
	return p.plain(n, false)
}

// noColon refuses what is no key but used as one.
func (p *parser) noColon(what string) {
	i := p.pos
	for p.at(i) == ' ' {
		i++
	}
	if p.at(i) == ':' && p.gap(i+1) {
		p.fail(i, "%s cannot be a key; a key is text on one line", what)
	}
}

// begins refuses what a plain scalar cannot begin with.
func (p *parser) begins(i int, flow bool) bool {
	c := p.at(i)
	switch c {
	case '&', '*':
		p.fail(i, "anchors and aliases (& and *) are not read here; write the value itself, or put text that begins with %c in quotes", c)
	case '!':
		p.fail(i, "tags (!) are not read here; put text that begins with ! in quotes")
	case '%', '@', '`', '|', '>':
		p.fail(i, "text that begins with %c is put in quotes", c)
	case ',', ']', '}', '[', '{':
		p.fail(i, "%q is not expected here; text that begins with it is put in quotes", c)
	case '-', '?', ':':
		if p.gap(i+1) || flow && (c != '-' || strings.IndexByte(",[]{}", p.at(i+1)) >= 0) {
			p.fail(i, "%q is not expected here; text that begins with it is put in quotes", c)
		}
	case '#':
		p.fail(i, "text that begins with # is put in quotes")
	}
	return p.fault == nil
}

// plain reads a scalar without quotes. In flow it has one line.
func (p *parser) plain(n int, flow bool) *Node {
	start := p.pos
	if !p.begins(start, flow) {
		return nil
	}
	end, comment := p.plainLine(flow)
	var text strings.Builder
	first := p.src[start:end]
	for !flow && !comment && p.fault == nil {
		i, breaks := p.pos, 0
		for p.at(i) == '\n' {
			breaks++
			i++
			for p.at(i) == ' ' {
				i++
			}
		}
		if breaks == 0 || p.ends(i) || p.src[i] == '#' || p.column(i) <= n || p.begun(i) && p.marker(i) {
			break
		}
		p.pos = i
		if p.dash(i) {
			return p.fail(i, "an item of a list cannot follow a value; put text that goes on here in quotes, or indent less")
		}
		if p.src[i] == '\t' {
			return p.fail(i, tabs)
		}
		if text.Len() == 0 {
			text.WriteString(first)
		}
		from := i
		end, comment = p.plainLine(false)
		fold(&text, breaks)
		text.WriteString(p.src[from:end])
	}
	if p.fault != nil {
		return nil
	}
	if text.Len() > 0 {
		node := p.node(String, Plain, start, end)
		node.Text = text.String()
		return node
	}
	return p.resolve(first, start, end)
}

// fold writes what stands for n line breaks within a scalar.
func fold(b *strings.Builder, n int) {
	if n == 1 {
		b.WriteByte(' ')
		return
	}
	for range n - 1 {
		b.WriteByte('\n')
	}
}

// plainLine goes over the part of a plain scalar on one line. It returns where its
// text ends, and whether a comment follows; pos is the end of the line, or in flow
// where the scalar ends.
func (p *parser) plainLine(flow bool) (end int, comment bool) {
	end = p.pos
	for i := p.pos; ; i++ {
		if p.ends(i) {
			p.pos = i
			return end, false
		}
		switch c := p.src[i]; c {
		case ' ':
			continue
		case '\t':
			p.fail(i, tabs)
			return end, false
		case '#':
			if i > 0 && p.src[i-1] == ' ' {
				p.pos = end
				if !flow {
					p.pos = i
					p.comment()
				}
				return end, true
			}
		case ':':
			if p.gap(i + 1) {
				if flow {
					p.pos = end
					return end, false
				}
				p.fail(i, `": " cannot stand inside of text without quotes; put the text in quotes, or indent as the keys beside it`)
				return end, false
			}
			if flow && strings.IndexByte(",[]{}", p.at(i+1)) >= 0 {
				p.fail(i, `readers do not agree about what this ":" is; put a space behind it, or the text in quotes`)
				return end, false
			}
		case ',', '[', ']', '{', '}':
			if flow {
				if i > p.pos && p.src[end-1] == '?' {
					p.fail(end-1, `readers do not agree about text that ends with "?"; put it in quotes`)
				}
				p.pos = end
				return end, false
			}
		}
		end = i + 1
	}
}

// quoted reads a scalar in quotes.
func (p *parser) quoted(n int) *Node {
	start, quote := p.pos, p.src[p.pos]
	style := Double
	if quote == '\'' {
		style = Single
	}
	var text []byte
	kept := 0 // what of text was written as an escape, so that folding leaves its spaces
	for i := start + 1; i < len(p.src); {
		c := p.src[i]
		switch {
		case c == quote && quote == '\'' && p.at(i+1) == '\'':
			text = append(text, '\'')
			i += 2
		case c == quote:
			p.pos = i + 1
			node := p.node(String, style, start, p.pos)
			node.Text = string(text)
			return node
		case c == '\t':
			return p.fail(i, tabs)
		case c == '\n':
			for len(text) > kept && text[len(text)-1] == ' ' {
				text = text[:len(text)-1]
			}
			var breaks int
			if i, breaks = p.lineBreaks(i, n, start); p.fault != nil {
				return nil
			}
			if breaks == 1 {
				text = append(text, ' ')
			}
			text = append(text, strings.Repeat("\n", breaks-1)...)
			kept = len(text)
		case c == '\\' && quote == '"' && p.at(i+1) == '\n':
			var breaks int
			if i, breaks = p.lineBreaks(i+1, n, start); p.fault != nil {
				return nil
			}
			text = append(text, strings.Repeat("\n", breaks-1)...)
			kept = len(text)
		case c == '\\' && quote == '"':
			r, next := p.escape(i)
			if p.fault != nil {
				return nil
			}
			text = utf8.AppendRune(text, r)
			kept = len(text)
			i = next
		default:
			text = append(text, c)
			i++
		}
	}
	return p.fail(start, "the text in quotes does not end: its %c is missing", quote)
}

// lineBreaks goes over the line breaks at i inside of quotes that began at start, to
// the text on the next line that has some.
func (p *parser) lineBreaks(i, n, start int) (next, breaks int) {
	for p.at(i) == '\n' {
		breaks++
		i++
		from := i
		for p.at(i) == ' ' {
			i++
		}
		if i == from && i < len(p.src) && p.marker(i) {
			p.fail(start, "the text in quotes does not end before the next document")
			return i, breaks
		}
	}
	switch {
	case p.at(i) == '\t':
		p.fail(i, tabs)
	case i < len(p.src) && p.column(i) <= n:
		p.fail(start, "the text in quotes does not end: its further lines are indented more than the key or the dash before it, or its closing quote is missing")
	}
	return i, breaks
}

var simpleEscapes = map[byte]rune{
	'0': 0, 'a': 7, 'b': 8, 't': 9, 'n': 10, 'v': 11, 'f': 12, 'r': 13, 'e': 27, ' ': ' ',
	'"': '"', '/': '/', '\\': '\\', 'N': 0x85, '_': 0xa0, 'L': 0x2028, 'P': 0x2029,
}

// escape reads the escape at i.
func (p *parser) escape(i int) (r rune, next int) {
	c := p.at(i + 1)
	if r, ok := simpleEscapes[c]; ok && i+1 < len(p.src) {
		return r, i + 2
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		p.fail(i, `no escape of text in double quotes; a \ itself is written \\, or put the text in single quotes`)
		return 0, i
	}
	r, ok := p.hex(i+2, digits)
	next = i + 2 + digits
	if ok && c == 'u' && utf16.IsSurrogate(r) && p.at(next) == '\\' && p.at(next+1) == 'u' {
		low, _ := p.hex(next+2, 4)
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, next + 6
		}
	}
	if !ok || !utf8.ValidRune(r) {
		p.fail(i, `\%c needs the %d hexadecimal digits of a character`, c, digits)
	}
	return r, next
}

func (p *parser) hex(i, digits int) (rune, bool) {
	if i+digits > len(p.src) {
		return 0, false
	}
	for _, c := range []byte(p.src[i : i+digits]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
			return 0, false
		}
	}
	u, err := strconv.ParseUint(p.src[i:i+digits], 16, 32)
	return rune(u), err == nil && u <= utf8.MaxRune
}
