package llm

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// hidden is what a secret shows as.
const hidden = "(key)"

// Of a secret of at least longSecret characters the beginning is hidden too, from
// partSecret characters on, which is what a cut may leave of it, and in whatever
// case it comes. A shorter one is no more than a word, and only as it is.
const longSecret, partSecret = 8, 12

// secrets are the forms in which what must not show may come back.
type secrets []string

func newSecrets(secret string) secrets {
	if secret == "" {
		return nil
	}
	quoted := strconv.Quote(secret)
	all := secrets{secret, quoted[1 : len(quoted)-1], url.QueryEscape(secret), url.PathEscape(secret)}
	slices.Sort(all)
	return slices.Compact(all)
}

// failure returns f without the secrets in it; f itself is not changed.
func (s secrets) failure(f *Failure) *Failure {
	if f == nil || len(s) == 0 {
		return f
	}
	safe := *f
	safe.Message, safe.RequestID = s.text(f.Message), s.text(f.RequestID)
	if len(s[0]) >= longSecret { // else it could be a word of a code of ours
		safe.Code = s.text(f.Code)
	}
	return &safe
}

func (s secrets) text(text string) string {
	for _, secret := range s {
		text = hide(text, secret)
	}
	return text
}

func hide(text, secret string) string {
	if len(secret) < longSecret {
		return strings.ReplaceAll(text, secret, hidden)
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n := common(text[i:], secret)
		if n == len(secret) || n >= partSecret {
			b.WriteString(hidden)
			i += n
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// common is how many bytes a and b have in common at their beginning, whatever
// the case of letters.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && lower(a[n]) == lower(b[n]) {
		n++
	}
	return n
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
