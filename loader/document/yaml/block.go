package yaml

import "strings"

// keyBytes is the longest key: that of YAML itself.
const keyBytes = 1024

// document reads the whole text.
func (p *parser) document() *Node {
	p.opening()
	column := p.blank()
	if p.fault != nil || column < 0 {
		return nil
	}
	root := p.block(-1)
	if p.fault != nil {
		return nil
	}
	if p.blank() >= 0 {
		return p.fail(p.pos, "this is indented otherwise than what is before it, or is no part of it")
	}
	return root
}

// opening goes over a --- at the beginning.
func (p *parser) opening() {
	for p.fault == nil {
		p.spaces()
		switch {
		case p.fault != nil || p.pos >= len(p.src):
			return
		case p.src[p.pos] == '\n':
			p.pos++
		case p.src[p.pos] == '#':
			p.comment()
		case p.src[p.pos] == '%' && p.begun(p.pos):
			p.fail(p.pos, "directives (%%) are not read here; leave the line out")
		case strings.HasPrefix(p.src[p.pos:], "---") && p.begun(p.pos) && p.gap(p.pos+3):
			p.pos += 3
			p.endLine()
			return
		default:
			return
		}
	}
}

// dash says whether the - of a list's item is at i.
func (p *parser) dash(i int) bool { return p.at(i) == '-' && p.gap(i+1) }

// block reads the node at pos. Lines that belong to it are indented more than n.
func (p *parser) block(n int) *Node {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	switch {
	case p.dash(p.pos):
		return p.list(p.column(p.pos))
	case p.isKey():
		return p.mapping(p.column(p.pos))
	}
	node := p.inline(n)
	if p.fault == nil && node.Style != Literal && node.Style != Folded {
		p.endLine()
	}
	return node
}

// list reads a list whose dashes are in a column.
func (p *parser) list(column int) *Node {
	list := p.node(List, Block, p.pos, p.pos)
	for p.fault == nil {
		list.Dashes = append(list.Dashes, p.pos)
		p.pos++
		after := p.pos
		if p.spaces(); p.fault != nil {
			return nil
		}
		var item *Node
		if p.ends(p.pos) || p.src[p.pos] == '#' {
			if p.blank() > column {
				item = p.block(column)
			} else {
				item = p.missing(after)
			}
		} else {
			item = p.block(column)
		}
		if p.fault != nil {
			return nil
		}
		list.Items = append(list.Items, item)
		list.End = item.End
		switch next := p.blank(); {
		case p.fault != nil:
			return nil
		case next > column:
			return p.fail(p.pos, "this is indented by %d, but belongs to no value; the list's items begin at %d", next, column)
		case next < column || !p.dash(p.pos):
			return list
		}
	}
	return nil
}

// mapping reads a map whose keys are in a column.
func (p *parser) mapping(column int) *Node {
	m := p.node(Map, Block, p.pos, p.pos)
	var seen keys
	for p.fault == nil {
		if !p.isKey() {
			if p.fault == nil {
				p.fail(p.pos, `here a key and ":" are expected, as in "key: value"`)
			}
			return nil
		}
		key := p.key()
		if p.fault != nil || !seen.add(p, m, key) {
			return nil
		}
		p.pos++ // the colon
		value := p.after(column)
		if p.fault != nil {
			return nil
		}
		m.Keys, m.Items = append(m.Keys, key), append(m.Items, value)
		m.End = value.End
		switch next := p.blank(); {
		case p.fault != nil:
			return nil
		case next > column:
			return p.fail(p.pos, "this is indented by %d, but belongs to no value; the keys of the map begin at %d", next, column)
		case next < column:
			return m
		case p.dash(p.pos):
			return p.fail(p.pos, `here a key and ":" are expected; an item of a list cannot follow a key that has a value`)
		}
	}
	return nil
}

// after reads a value after a key's colon, in a map whose keys are in a column.
func (p *parser) after(column int) *Node {
	colon := p.pos
	if p.spaces(); p.fault != nil {
		return nil
	}
	if !p.ends(p.pos) && (p.src[p.pos] != '#' || p.pos == colon) {
		if p.dash(p.pos) {
			return p.fail(p.pos, "a list begins on the line after its key")
		}
		if p.isKey() || p.fault != nil {
			return p.fail(p.pos, `a value with ": " inside is put in quotes; a map begins on the line after its key`)
		}
		if !p.enter() {
			return nil
		}
		defer p.leave()
		value := p.inline(column)
		if p.fault == nil && value.Style != Literal && value.Style != Folded {
			p.endLine()
		}
		return value
	}
	switch next := p.blank(); {
	case p.fault != nil:
		return nil
	case next > column:
		return p.block(column)
	case next == column && p.dash(p.pos):
		if !p.enter() {
			return nil
		}
		defer p.leave()
		return p.list(column)
	}
	return p.missing(colon)
}

// isKey says whether a key and its colon are at pos.
func (p *parser) isKey() bool {
	switch c := p.at(p.pos); {
	case c == '"' || c == '\'':
		end := p.quoteEnd(p.pos)
		for p.at(end) == ' ' {
			end++
		}
		return end > 0 && p.at(end) == ':' && p.gap(end+1)
	case c == '?' && p.gap(p.pos+1):
		p.fail(p.pos, "complex keys (?) are not read here; write key: value")
		return false
	case c == '{' || c == '[' || c == '|' || c == '>' || c == 0:
		return false
	}
	return p.plainKey() >= 0
}

// plainKey returns where the plain key at pos ends, -1 where there is none.
func (p *parser) plainKey() int {
	for i := p.pos; !p.ends(i) && i-p.pos <= keyBytes; i++ {
		switch p.src[i] {
		case ':':
			if p.gap(i + 1) {
				return i
			}
		case '#':
			if i > p.pos && p.src[i-1] == ' ' {
				return -1
			}
		}
	}
	return -1
}

// quoteEnd returns the offset after a quoted scalar that begins at i and ends on its
// line, 0 where it does not.
func (p *parser) quoteEnd(i int) int {
	quote := p.src[i]
	for j := i + 1; !p.ends(j) && j-i <= keyBytes; j++ {
		switch {
		case quote == '"' && p.src[j] == '\\':
			if j++; p.ends(j) {
				return 0
			}
		case p.src[j] != quote:
		case quote == '\'' && p.at(j+1) == '\'':
			j++
		default:
			return j + 1
		}
	}
	return 0
}

// key reads the key at pos, which isKey has seen, and goes to its colon.
func (p *parser) key() *Node {
	if c := p.src[p.pos]; c == '"' || c == '\'' {
		k := p.quoted(-1)
		if p.fault == nil {
			p.spaces()
		}
		return k
	}
	if !p.begins(p.pos, false) {
		return nil
	}
	end := p.plainKey()
	text := strings.TrimRight(p.src[p.pos:end], " ")
	return p.plainKeyNode(text, end)
}

func (p *parser) plainKeyNode(text string, end int) *Node {
	if i := strings.IndexByte(text, '\t'); i >= 0 {
		return p.fail(p.pos+i, tabs)
	}
	if text == "" {
		return p.fail(p.pos, `a key is missing before the ":"`)
	}
	if text == "<<" {
		return p.fail(p.pos, "merge keys (<<) are not read here; write the members themselves")
	}
	k := p.node(String, Plain, p.pos, p.pos+len(text))
	k.Text = text
	p.pos = end
	return k
}

// keys finds keys that are there twice.
type keys struct{ seen map[string]*Node }

// add takes a key that is going to be in m, unless it is there already.
func (s *keys) add(p *parser, m, key *Node) bool {
	var before *Node
	if s.seen == nil && len(m.Keys) < 8 {
		for _, k := range m.Keys {
			if k.Text == key.Text {
				before = k
			}
		}
	} else {
		if s.seen == nil {
			s.seen = make(map[string]*Node, 16)
			for _, k := range m.Keys {
				s.seen[k.Text] = k
			}
		}
		before = s.seen[key.Text]
		s.seen[key.Text] = key
	}
	if before != nil {
		line, _ := p.file.Position(before.Start)
		p.fail(key.Start, "the key is there already, on line %d; leave one of them out", line)
	}
	return before == nil
}
