package yaml

import "strings"

// text reads block text: | or > and the lines after it, indented more than n.
func (p *parser) text(n int) *Node {
	start, style := p.pos, Literal
	if p.src[p.pos] == '>' {
		style = Folded
	}
	p.pos++
	chomp, indent := byte(0), 0
	for {
		switch c := p.at(p.pos); {
		case (c == '-' || c == '+') && chomp == 0:
			chomp = c
		case c >= '1' && c <= '9' && indent == 0:
			indent = max(n, 0) + int(c-'0')
		default:
			if p.endLine(); p.fault != nil {
				p.fault.Message = fmtHeader
				return nil
			}
			return p.textLines(start, style, chomp, max(n, 0), indent)
		}
		p.pos++
	}
}

const fmtHeader = "block text begins on the line after its | or >, which only + or -, a number and a comment may follow; put text that begins with | or > in quotes"

// textLines reads the lines of block text. indent is 0 where the first line says it.
func (p *parser) textLines(start int, style Style, chomp byte, n, indent int) *Node {
	var lines []string
	end, empty, deepest := p.pos, 0, 0
	for p.pos < len(p.src) {
		from := p.pos + 1 // after the newline of the line before
		if from >= len(p.src) {
			break
		}
		i := from
		for p.at(i) == ' ' && (indent == 0 || i-from < indent) {
			i++
		}
		if p.ends(i) {
			deepest = max(deepest, i-from)
			empty++
			p.pos = i
			continue
		}
		if i-from < max(indent, n+1) {
			break
		}
		if indent == 0 {
			if indent = i - from; deepest > indent {
				return p.fail(start, "the empty lines at the beginning of the block text are indented more than its first line; leave their spaces out")
			}
		}
		for range empty {
			lines = append(lines, "")
		}
		empty = 0
		stop := i
		for !p.ends(stop) {
			stop++
		}
		lines = append(lines, p.src[from+indent:stop])
		p.pos, end = stop, stop
	}
	if empty > 0 && p.pos == len(p.src) && p.src[p.pos-1] == ' ' {
		empty-- // spaces at the end of the file are no line
	}
	node := p.node(String, style, start, end)
	node.Text = join(lines, style == Folded)
	// What ends with the file and has no newline there does not get one.
	final := 1
	if end == len(p.src) {
		final = 0
	}
	switch {
	case chomp == '+' && len(lines) > 0:
		node.Text += strings.Repeat("\n", final+empty)
	case chomp == '+':
		node.Text = strings.Repeat("\n", empty)
	case chomp == 0 && len(lines) > 0:
		node.Text += strings.Repeat("\n", final)
	}
	return node
}

// join makes a text of lines. Folded, a line break between two lines that begin at
// the indentation is a space.
func join(lines []string, folded bool) string {
	if !folded {
		return strings.Join(lines, "\n")
	}
	var b strings.Builder
	spaced := func(s string) bool { return s != "" && (s[0] == ' ' || s[0] == '\t') }
	before := -1 // the last line with something in it
	for i, line := range lines {
		if line == "" {
			continue
		}
		between := i - before - 1
		switch {
		case before < 0:
			b.WriteString(strings.Repeat("\n", between))
		case spaced(line) || spaced(lines[before]):
			b.WriteString(strings.Repeat("\n", between+1))
		case between == 0:
			b.WriteByte(' ')
		default:
			b.WriteString(strings.Repeat("\n", between))
		}
		b.WriteString(line)
		before = i
	}
	return b.String()
}
