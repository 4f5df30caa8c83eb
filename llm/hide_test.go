package llm

import "testing"

func TestHide(t *testing.T) {
	const key = "sk-Abcd-0123456789"
	for _, c := range []struct{ name, secret, text, want string }{
		{"whole", key, "bad key " + key + ".", "bad key (key)."},
		{"twice", key, key + key, "(key)(key)"},
		{"upper", key, "SK-ABCD-0123456789", "(key)"},
		{"cut", key, "was sk-Abcd-01234…", "was (key)…"},
		{"aBeginning", key, "was sk-Abcd-", "was sk-Abcd-"},
		{"none", "", "anything", "anything"},
		{"quoted", `ab"cdefghi\j`, `say ab\"cdefghi\\j`, "say (key)"},
		{"escaped", "abc/defghij+k", "at /v1/abc%2Fdefghij%2Bk", "at /v1/(key)"},
		{"word", "x1", "x1 X1", "(key) X1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &Failure{Code: "SERVER", Message: c.text}
			if got := newSecrets(c.secret).failure(f); got.Message != c.want || got.Code != "SERVER" || f.Message != c.text {
				t.Errorf("%q, want %q; the failure itself %+v", got.Message, c.want, f)
			}
		})
	}
	if got := newSecrets("SERVER").failure(&Failure{Code: "SERVER", Message: "a"}); got.Code != "SERVER" {
		t.Errorf("code %q: a short key is a word of it", got.Code)
	}
}
