package web

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/dsh-go/dsh/limits"
)

func encoded(t *testing.T, e encoding.Encoding, s string) string {
	out, err := e.NewEncoder().String(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDecode(t *testing.T) {
	ascii := strings.Repeat("a", 2000)
	jp := "日本語"
	for name, c := range map[string]struct {
		body, contentType string
		isHTML            bool
		want              string
	}{
		"utf8":                  {"é", "text/plain; charset=utf-8", false, "é"},
		"utf8-unsaid":           {"é", "text/plain", false, "é"},
		"utf8-after-1024-ascii": {ascii + "é", "text/plain", false, ascii + "é"},
		"utf8-html-late":        {ascii + "é", "text/html", true, ascii + "é"},
		"utf8-bom":              {"\ufeffé", "text/plain; charset=iso-8859-1", false, "é"},
		"utf8-cut":              {"é\xc3", "text/plain; charset=utf-8", false, "é\ufffd"},
		"latin1-header":         {"\xe9", "text/plain; charset=ISO-8859-1", false, "é"},
		"latin1-unsaid":         {"caf\xe9", "text/plain", false, "café"},
		"cp1252-quotes":         {"\x93hi\x94", "text/html; charset=windows-1252", true, "“hi”"},
		"utf16-bom":             {encoded(t, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "é"), "text/plain", false, "é"},
		"utf16-header":          {encoded(t, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "é"), "text/plain; charset=utf-16be", false, "é"},
		"sjis-header":           {encoded(t, japanese.ShiftJIS, jp), "text/plain; charset=Shift_JIS", false, jp},
		"sjis-meta":             {`<meta charset="shift_jis">` + encoded(t, japanese.ShiftJIS, jp), "text/html", true, `<meta charset="shift_jis">` + jp},
		"iso2022-meta":          {`<meta charset="iso-2022-jp">` + encoded(t, japanese.ISO2022JP, jp), "text/html", true, `<meta charset="iso-2022-jp">` + jp},
		"meta-latin1-but-utf8":  {`<meta charset="iso-8859-1">é`, "text/html", true, `<meta charset="iso-8859-1">é`},
		"meta-in-json":          {`{"html":"<meta charset=shift_jis>","x":"é"}`, "application/json", false, `{"html":"<meta charset=shift_jis>","x":"é"}`},
		"koi8":                  {encoded(t, charmap.KOI8R, "привет"), "text/plain; charset=koi8-r", false, "привет"},
		"unknown-charset":       {"é", "text/plain; charset=klingon", false, "é"},
		"broken-header":         {"é", "text/plain; charset", false, "é"},
		"empty":                 {"", "text/plain", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decode([]byte(c.body), c.contentType, c.isHTML); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbf<meta charset=shift_jis>\x93\xfa"), "text/html")
	f.Add([]byte("\xff\xfea\x00"), "text/plain; charset=utf-7")
	f.Add([]byte("\x1b$B"), "text/plain; charset=iso-2022-jp")
	f.Add([]byte("\x0e"), "text/html; charset=iso-2022-kr")
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		for _, isHTML := range []bool{false, true} {
			got := decode(body, contentType, isHTML)
			if !utf8.ValidString(got) {
				t.Fatalf("%q is not UTF-8", got)
			}
			if len(got) > 3*len(body)+3 {
				t.Fatalf("%d bytes become %d", len(body), len(got))
			}
		}
		if m := mediaType(contentType); len([]rune(m)) > limits.SourceLine || strings.ContainsAny(m, "\n\x1b") {
			t.Fatalf("%q is shown as %q", contentType, m)
		}
	})
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
		less bool
	}{{"", 0, "", false}, {"a", 0, "", true}, {"éé", 2, "éé", false}, {"éé", 1, "é", true}, {"abc", 3, "abc", false}} {
		if got, less := cut(c.s, c.most); got != c.want || less != c.less {
			t.Errorf("%q, %d: got %q, %v", c.s, c.most, got, less)
		}
	}
}
