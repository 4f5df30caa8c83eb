package yaml

import "strings"

// flow reads what is at pos inside of brackets, or a collection in brackets.
func (p *parser) flow(n int) *Node {
	switch p.src[p.pos] {
	case '[', '{':
		if !p.enter() {
			return nil
		}
		defer p.leave()
		if p.src[p.pos] == '[' {
			return p.flowList(n)
		}
		return p.flowMap(n)
	case '"', '\'':
		return p.quoted(n)
	}
	return p.plain(n, true)
}

// flowSpace goes over spaces, lines and comments inside of brackets that began at
// start. It returns false when something is wrong, among it that the text ends.
func (p *parser) flowSpace(start int) bool {
	for p.fault == nil {
		from := p.pos
		if p.spaces(); p.fault != nil {
			return false
		}
		switch {
		case p.pos >= len(p.src):
			p.fail(start, "the %q does not end: its %q is missing", p.src[start], closing(p.src[start]))
		case p.src[p.pos] == '\n':
			p.pos++
		case p.src[p.pos] == '#' && (p.pos > from || p.begun(p.pos)):
			p.comment()
		case p.src[p.pos] == '#':
			p.fail(p.pos, "a comment needs a space before its #")
		case p.begun(p.pos) && p.marker(p.pos):
			p.fail(start, "the %q does not end before the next document: its %q is missing", p.src[start], closing(p.src[start]))
		default:
			return true
		}
	}
	return false
}

func closing(open byte) byte {
	if open == '[' {
		return ']'
	}
	return '}'
}

// separator goes over what follows an item. It returns false at the closing bracket.
func (p *parser) separator(start int) bool {
	if !p.flowSpace(start) {
		return false
	}
	switch p.src[p.pos] {
	case ',':
		p.pos++
		return p.flowSpace(start) && p.src[p.pos] != closing(p.src[start])
	case closing(p.src[start]):
		return false
	case ':':
		p.fail(p.pos, "a key and its value stand in braces: {key: value}")
	case '{':
		if p.src[p.pos-1] == '$' {
			p.fail(p.pos, "inside of brackets text with ${…} is put in quotes; where it is to be a number, the map is written on lines of its own")
			return false
		}
		fallthrough
	default:
		p.fail(p.pos, `here "," or %q is expected; put text that has spaces over several lines, quotes or brackets inside in quotes`, closing(p.src[start]))
	}
	return false
}

func (p *parser) flowList(n int) *Node {
	start := p.pos
	list := p.node(List, Flow, start, start)
	p.pos++
	if !p.flowSpace(start) {
		return nil
	}
	for more := p.src[p.pos] != ']'; more; {
		item := p.flow(n)
		if p.fault != nil {
			return nil
		}
		list.Items = append(list.Items, item)
		more = p.separator(start)
	}
	if p.fault != nil {
		return nil
	}
	p.pos++
	list.End = p.pos
	return list
}

func (p *parser) flowMap(n int) *Node {
	start := p.pos
	m := p.node(Map, Flow, start, start)
	p.pos++
	if !p.flowSpace(start) {
		return nil
	}
	var seen keys
	for more := p.src[p.pos] != '}'; more; {
		key := p.flowKey(start)
		if p.fault != nil || !seen.add(p, m, key) {
			return nil
		}
		p.pos++ // the colon
		colon := p.pos
		if !p.flowSpace(start) {
			return nil
		}
		var value *Node
		if c := p.src[p.pos]; c == ',' || c == '}' {
			value = p.missing(colon)
		} else {
			value = p.flow(n)
		}
		if p.fault != nil {
			return nil
		}
		m.Keys, m.Items = append(m.Keys, key), append(m.Items, value)
		more = p.separator(start)
	}
	if p.fault != nil {
		return nil
	}
	p.pos++
	m.End = p.pos
	return m
}

// flowKey reads a key inside of braces, and goes to its colon.
func (p *parser) flowKey(start int) *Node {
	var key *Node
	at := p.pos
	switch c := p.src[at]; {
	case c == '"' || c == '\'':
		if p.quoteEnd(at) == 0 {
			return p.fail(at, "a key is text on one line")
		}
		key = p.quoted(-1)
	case !p.begins(at, true):
		return nil
	default:
		end, _ := p.plainLine(true)
		if p.fault != nil {
			return nil
		}
		if end-at > keyBytes {
			return p.fail(at, "a key has at most %d bytes", keyBytes)
		}
		p.pos = at
		key = p.plainKeyNode(p.src[at:end], end)
	}
	if p.fault != nil {
		return nil
	}
	p.spaces()
	switch {
	case p.fault != nil:
		return nil
	case p.at(p.pos) != ':' && key.Style == Plain && strings.IndexByte(key.Text, ':') >= 0:
		return p.fail(at+strings.IndexByte(key.Text, ':'), `a space is missing after the ":"`)
	case p.at(p.pos) != ':':
		return p.fail(at, `a key without a value; write "%s: null" if null is meant`, short(p.src[key.Start:key.End]))
	case key.Style == Plain && !p.gap(p.pos+1):
		return p.fail(p.pos, `a space is missing after the ":"`)
	}
	return key
}

// short returns a text that is quoted in a message.
func short(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
