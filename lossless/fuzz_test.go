package lossless_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dsh-go/dsh/lossless"
)

// FuzzParse compares with encoding/json: the same texts are JSON, but for bytes
// that are not UTF-8, repeated keys and depth; and they say the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,true,false,null,"x\u0041\n"]}`, `"\ud83d\ude00"`, `"\ud800"`, `[[[]]]`, `{"a":1,"a":2}`,
		` 1 `, `01`, `1e400`, `{"__proto__":{}}`, "\"\u2028\"", `[1,]`, `"\u00e9\/"`, `{}{}`, "\x00", `-`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			return
		}
		v, err := lossless.Parse(text)
		if err != nil {
			if len(err.Error()) > 2000 || !utf8.ValidString(err.Error()) {
				t.Fatalf("a bad error: %q", err)
			}
			reason := err.Error()
			excused := strings.Contains(reason, "duplicate key") || strings.Contains(reason, "UTF-8") || strings.Contains(reason, "nested deeper")
			if json.Valid(text) && !excused {
				t.Fatalf("encoding/json takes %q: %v", text, err)
			}
			return
		}
		if !json.Valid(text) {
			t.Fatalf("encoding/json refuses %q", text)
		}
		encoded := v.Encode()
		again, err := lossless.Parse(encoded)
		if err != nil || !lossless.Equal(v, again) || !bytes.Equal(again.Encode(), encoded) {
			t.Fatalf("%q came back as %q (%v)", encoded, again.Encode(), err)
		}
		if a, b := decode(t, text), decode(t, encoded); a != b {
			t.Fatalf("%q says %s, encoded %s", text, a, b)
		}
		_ = lossless.CheckNumbers("", v)
	})
}

// decode returns what encoding/json reads, written in one way.
func decode(t *testing.T, text []byte) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

var sample = []byte(`{"path":"/home/me/project/main.go","offset":120,"limit":400,"flags":["a","b"],"options":{"hidden":true,"depth":3.5,"glob":"**/*.go"},"text":"line one\nline two with \"quotes\"","none":null,"ok":true}`)

func BenchmarkParse(b *testing.B) {
	b.Run("size=200", func(b *testing.B) {
		b.SetBytes(int64(len(sample)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := lossless.Parse(sample); err != nil {
				b.Fatal(err)
			}
		}
	})
	big := []byte("[" + strings.Repeat(string(sample)+",", 5000) + "0]")
	b.Run("size=1M", func(b *testing.B) {
		b.SetBytes(int64(len(big)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := lossless.Parse(big); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	v := parse(b, string(sample))
	b.ReportAllocs()
	for b.Loop() {
		v.Encode()
	}
}

func BenchmarkCheckNumbers(b *testing.B) {
	v := parse(b, string(sample))
	b.ReportAllocs()
	for b.Loop() {
		if err := lossless.CheckNumbers("", v); err != nil {
			b.Fatal(err)
		}
	}
}
