package plain

import "unicode/utf8"

// Torn is how many bytes at the end of b begin a character that is not complete.
func Torn(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if at := len(b) - i; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

// Continued is how many bytes at the beginning of b belong to a character before; 0
// where there are more of them than a character has.
func Continued(b []byte) int {
	n := 0
	for n < len(b) && !utf8.RuneStart(b[n]) {
		if n++; n == utf8.UTFMax {
			return 0
		}
	}
	return n
}
