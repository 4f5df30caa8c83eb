package wire

import "bytes"

// CutObject cuts the text of a JSON object at its commas and gives each part to take,
// with the bytes between the quotes of its key. It reports whether the text is one
// object, as far as brackets and quotes go, and take accepted all parts. Nothing is
// parsed: whoever uses a part must do that, and refuse what is none.
func CutObject(text []byte, take func(key, part []byte) bool) bool { return cut(text, '{', take) }

// CutArray is CutObject for the items of an array.
func CutArray(text []byte, take func(part []byte) bool) bool {
	return cut(text, '[', func(_, part []byte) bool { return take(part) })
}

func cut(text []byte, open byte, take func(key, part []byte) bool) bool {
	i := blank(text, 0)
	if i == len(text) || text[i] != open {
		return false
	}
	last := byte('}')
	if open == '[' {
		last = ']'
	}
	if i = blank(text, i+1); i < len(text) && text[i] == last {
		return blank(text, i+1) == len(text)
	}
	for i < len(text) {
		var key []byte
		if open == '{' {
			end := quoted(text, i)
			if end < 0 {
				return false
			}
			key = text[i+1 : end-1]
			if i = blank(text, end); i == len(text) || text[i] != ':' {
				return false
			}
			i = blank(text, i+1)
		}
		end := value(text, i)
		if end <= i || !take(key, bytes.TrimRight(text[i:end], space)) {
			return false
		}
		switch {
		case end == len(text):
			return false
		case text[end] == last:
			return blank(text, end+1) == len(text)
		case text[end] != ',':
			return false
		}
		i = blank(text, end+1)
	}
	return false
}

const space = " \t\r\n"

// blank is where the white space at i ends.
func blank(text []byte, i int) int {
	for i < len(text) && bytes.IndexByte([]byte(space), text[i]) >= 0 {
		i++
	}
	return i
}

// quoted is where the string at i ends; negative: there is none.
func quoted(text []byte, i int) int {
	if i >= len(text) || text[i] != '"' {
		return -1
	}
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// value is where the value at i ends: at a comma or a bracket that is not its own.
// Negative: it does not end.
func value(text []byte, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			if i = quoted(text, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}
