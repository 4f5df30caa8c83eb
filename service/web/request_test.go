package web

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

func TestParseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://example.com":                              "https://example.com",
		"HTTPS://EXAMPLE.com:443/A?b=c#frag":               "https://example.com/A?b=c",
		"http://example.com.:80/":                          "http://example.com/",
		"http://example.com:0443/":                         "http://example.com:443/",
		"http://bücher.example/":                           "http://xn--bcher-kva.example/",
		"http://ＥＸＡＭＰＬＥ.com/":                              "http://example.com/",
		"http://under_score.example.com/":                  "http://under_score.example.com/",
		"http://[2606:4700:0::1111]:8080/":                 "http://[2606:4700::1111]:8080/",
		"http://1.2.3.4/":                                  "http://1.2.3.4/",
		"http://localhost:3000/x":                          "http://localhost:3000/x",
		"http://0x7f.example.com/":                         "http://0x7f.example.com/",
		"https://example.com/" + strings.Repeat("a", 7000): "https://example.com/" + strings.Repeat("a", 7000),
	} {
		u, err := parseURL(raw)
		if err != nil || u.String() != want {
			t.Errorf("%s: got %v, %v; want %s", raw, u, err, want)
		}
	}
}

func TestParseURLRefuses(t *testing.T) {
	for raw, says := range map[string]string{
		"":                            "http:// or https://",
		"example.com":                 "http:// or https://",
		"/path":                       "http:// or https://",
		"ftp://example.com/":          "http:// or https://",
		"file:///etc/passwd":          "http:// or https://",
		"javascript:alert(1)":         "http:// or https://",
		"http:example.com":            "no host",
		"http://":                     "no host",
		"http://./":                   "no host",
		"http://a..":                  "no host",
		"http://:80/":                 "no host",
		"http://user@example.com/":    "headers",
		"http://user:pw@example.com/": "headers",
		"http://%65xample.com/":       "not a URL",
		"http://exa mple.com/":        "not a URL",
		"http://example.com\x00/":     "not a URL",
		"http://example.com\n/":       "not a URL",
		"http://[::1":                 "not a URL",
		"http://[fe80::1%25eth0]/":    "zone",
		"http://example.com:0/":       "65535",
		"http://example.com:65536/":   "65535",
		"http://example.com:http/":    "not a URL",
		"http://127.1/":               "four decimal numbers",
		"http://2130706433/":          "four decimal numbers",
		"http://0x7f.0x0.0x0.0x1/":    "four decimal numbers",
		"http://0177.0.0.1/":          "four decimal numbers",
		"http://1.2.3.4.5/":           "four decimal numbers",
		"http://256.256.256.256/":     "four decimal numbers",
		"http://１２７.1/":               "four decimal numbers",
		"http://a<b.com/":             "no host",
		"https://" + strings.Repeat("a", limits.WebURL): "bytes",
	} {
		u, err := parseURL(raw)
		if service.CodeOf(err) != CodeInvalidURL || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %v, %v; want an error that says %q", raw, u, err, says)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: the error shows the password: %v", raw, err)
		}
	}
}

func TestRequestCompletes(t *testing.T) {
	got, err := FetchRequest{URL: "http://Example.com", Method: "head"}.complete()
	want := FetchRequest{URL: "http://example.com", Method: "HEAD", Format: "raw", MaxBytes: limits.WebBody, MaxChars: limits.WebContent, TimeoutMs: 30_000}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	got, err = FetchRequest{URL: "http://a", MaxBytes: 1 << 40, MaxChars: 7, TimeoutMs: 99_999, Format: "text"}.complete()
	want = FetchRequest{URL: "http://a", Method: "GET", Format: "text", MaxBytes: limits.WebBody, MaxChars: 7, TimeoutMs: 30_000}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
}

func TestRequestRefuses(t *testing.T) {
	many := map[string]string{}
	for i := range limits.WebHeaders + 1 {
		many["x-"+strings.Repeat("a", i+1)] = ""
	}
	for says, r := range map[string]FetchRequest{
		"'raw', 'markdown' or 'text'": {Format: "pdf"},
		"'GET' or 'HEAD'":             {Method: "POST"},
		"maxBytes is -1":              {MaxBytes: -1},
		"maxChars is -1":              {MaxChars: -1},
		"timeoutMs is -1":             {TimeoutMs: -1},
		"at most 50":                  {Headers: many},
		"not a header's name":         {Headers: map[string]string{"a b": ""}},
		"line breaks":                 {Headers: map[string]string{"a": "b\r\nc: d"}},
		"header Host is set":          {Headers: map[string]string{"Host": "internal"}},
		"header accept-encoding":      {Headers: map[string]string{"accept-encoding": "br"}},
		"header Proxy-Authorization":  {Headers: map[string]string{"Proxy-Authorization": "x"}},
		"at most 16384":               {Headers: map[string]string{"a": strings.Repeat("b", limits.WebHeaderAll)}},
	} {
		r.URL = "http://example.com"
		if _, err := r.complete(); service.CodeOf(err) != CodeInvalidRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
	for says, r := range map[string]SearchRequest{
		"query is empty": {Query: " \n"},
		"at most 2000":   {Query: strings.Repeat("é", limits.WebQuery+1)},
		"1 to 50":        {Query: "a", MaxResults: 51},
		"is -1":          {Query: "a", MaxResults: -1},
	} {
		if _, err := r.complete(); service.CodeOf(err) != CodeInvalidRequest || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want an error that says %q", err, says)
		}
	}
}

func TestForms(t *testing.T) {
	for text, want := range map[string]string{
		`"http://a/"`:                         `{"url":"http://a/"}`,
		`{"url":"http://a/","format":"text"}`: `{"url":"http://a/","format":"text"}`,
	} {
		var got FetchTarget
		err := json.Unmarshal([]byte(text), &got)
		if back, _ := json.Marshal(got.FetchRequest); err != nil || string(back) != want {
			t.Errorf("%s: got %s, %v", text, back, err)
		}
	}
	for text, says := range map[string]string{
		`7`: "it cannot be number", `["http://a/"]`: "it cannot be array", `{"url":7}`: "url cannot be number",
		`{"url":"a","body":"x"}`: `no member "body"`, `{"url":"a","signal":{}}`: "second argument", `{"url":"a","timeoutMs":1.5}`: "timeoutMs cannot be",
	} {
		var got FetchTarget
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error that says %q", text, err, says)
		}
	}
	var q SearchTarget
	if err := json.Unmarshal([]byte(`"go"`), &q); err != nil || q.Query != "go" {
		t.Error(q, err)
	}
	o := &FetchOptions{Format: "text", Method: "HEAD", Headers: map[string]string{"a": "b"}, MaxBytes: 1, MaxChars: 2, TimeoutMs: 3, Provider: "p"}
	got := FetchRequest{URL: "u", Format: "raw", Headers: map[string]string{"c": "d"}}.with(o)
	want := FetchRequest{URL: "u", Format: "text", Method: "HEAD", Headers: map[string]string{"a": "b"}, MaxBytes: 1, MaxChars: 2, TimeoutMs: 3, Provider: "p"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := want.with(nil).with(&FetchOptions{}); !cmp.Equal(got, want) {
		t.Errorf("no options change the request: %v", got)
	}
}

// What passes is canonical, has nothing that is refused, and stays as it is.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{
		"http://example.com", "https://[::1]:8080/a?b#c", "http://user@h/", "http://127.1", "http://0x7f000001/",
		"http://a%2eb/", "http://１.２.３.４/", "http://h:00080/", "http://xn--bcher-kva.example.", "http://[::ffff:127.0.0.1]/",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseURL(raw)
		if err != nil {
			if service.CodeOf(err) != CodeInvalidURL {
				t.Fatalf("%q: error without its code: %v", raw, err)
			}
			return
		}
		if u.User != nil || u.Fragment != "" || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			t.Fatalf("%q passes as %#v", raw, u)
		}
		again, err := parseURL(u.String())
		if len(u.String()) > limits.WebURL {
			return
		}
		if err != nil || again.String() != u.String() {
			t.Fatalf("%q: %s becomes %v, %v", raw, u, again, err)
		}
		host := u.Hostname()
		if _, err := netip.ParseAddr(host); err != nil && numeric(host[strings.LastIndex(host, ".")+1:]) {
			t.Fatalf("%q: %q may be taken for an address", raw, host)
		}
		if p, err := url.Parse(u.String()); err != nil || p.Host != u.Host {
			t.Fatalf("%q: %s is read as host %v", raw, u, p)
		}
	})
}
