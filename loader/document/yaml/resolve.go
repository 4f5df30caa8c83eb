package yaml

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	decimal = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
	based   = regexp.MustCompile(`^(0o[0-7]+|0x[0-9a-fA-F]+)$`)
	notJSON = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.nan|\.NaN|\.NAN)$`)
)

// resolve makes the value of a plain scalar.
func (p *parser) resolve(text string, start, end int) *Node {
	node := p.node(String, Plain, start, end)
	node.Text = text
	kind, value, problem := Resolve(text)
	if problem != "" {
		return p.fail(start, "%s", problem)
	}
	node.Kind, node.Text = kind, value
	return node
}

// Resolve says what text without quotes stands for in the core schema, and the
// Node.Text of it. problem says why it is refused.
func Resolve(text string) (kind Kind, value, problem string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return Null, "", ""
	case "true", "True", "TRUE":
		return Bool, "true", ""
	case "false", "False", "FALSE":
		return Bool, "false", ""
	}
	if c := text[0]; c > '9' || c < '0' && c != '-' && c != '+' && c != '.' {
		return String, text, ""
	}
	switch {
	case decimal.MatchString(text):
		value, problem = number(text)
		return Number, value, problem
	case based.MatchString(text):
		base := 16
		if text[1] == 'o' {
			base = 8
		}
		u, err := strconv.ParseUint(text[2:], base, 64)
		if err != nil {
			return Number, "", "the number has more than 64 bits; write it in decimal digits"
		}
		return Number, strconv.FormatUint(u, 10), ""
	case notJSON.MatchString(text):
		return Number, "", "there is no such number here; put it in quotes if text is meant"
	}
	return String, text, ""
}

// number makes a JSON literal of a decimal number, keeping its digits.
func number(text string) (value, problem string) {
	sign := ""
	switch text[0] {
	case '-':
		sign, text = "-", text[1:]
	case '+':
		text = text[1:]
	}
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if len(whole) > 1 && whole[0] == '0' {
		return "", "a number with zeros before it: some readers take it for an octal one; leave the zeros out, or put it in quotes if text is meant"
	}
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return sign + whole + fraction + exponent, ""
}
