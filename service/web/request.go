package web

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/idna"

	"github.com/dsh-go/dsh/limits"
)

// parseURL checks a URL and gives its canonical form: the host in lower-case
// ASCII without a dot at its end, no default port, no fragment.
func parseURL(raw string) (*url.URL, error) {
	if len(raw) > limits.WebURL {
		return nil, fail(CodeInvalidURL, "the URL has %d bytes; at most %d are allowed", len(raw), limits.WebURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fail(CodeInvalidURL, "%q is not a URL: write an absolute one, such as https://example.com/path", shown(raw))
	}
	u.Fragment, u.RawFragment = "", ""
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fail(CodeInvalidURL, "%q is not a URL that can be fetched: it must begin with http:// or https://", shown(raw))
	}
	if u.User != nil {
		return nil, fail(CodeInvalidURL, "the URL of %s holds a user name or password: leave it out, and send credentials in headers", shown(u.Hostname()))
	}
	host, err := canonicalHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	if u.Host, err = withPort(u, host); err != nil {
		return nil, err
	}
	return u, nil
}

func canonicalHost(host string) (string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", fail(CodeInvalidURL, "the address %s has a zone: write it without", shown(host))
		}
		return addr.String(), nil
	}
	ascii, err := strings.ToLower(strings.TrimSuffix(host, ".")), error(nil)
	if strings.IndexFunc(ascii, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		ascii, err = idna.Lookup.ToASCII(ascii)
	}
	labels := strings.Split(ascii, ".")
	if err != nil || slices.Contains(labels, "") || !httpguts.ValidHostHeader(ascii) {
		return "", fail(CodeInvalidURL, "the URL has no host that is valid: %q", shown(host))
	}
	if numeric(labels[len(labels)-1]) {
		return "", fail(CodeInvalidURL, "%q looks like an address, but is none: write four decimal numbers, such as 93.184.215.14", shown(host))
	}
	return ascii, nil
}

// numeric tells whether some resolver may take a name that ends so for an address.
func numeric(label string) bool {
	digits, hex := strings.CutPrefix(label, "0x")
	return strings.Trim(digits, "0123456789") == "" || hex && strings.Trim(digits, "0123456789abcdef") == ""
}

func withPort(u *url.URL, host string) (string, error) {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port := u.Port()
	if port == "" {
		return host, nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fail(CodeInvalidURL, "the port %s of %s is not between 1 and 65535", shown(port), shown(host))
	}
	if u.Scheme == "http" && n == 80 || u.Scheme == "https" && n == 443 {
		return host, nil
	}
	return host + ":" + strconv.FormatUint(n, 10), nil
}

// complete checks a request and fills in what it leaves to the defaults.
func (r FetchRequest) complete() (FetchRequest, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return r, err
	}
	r.URL = u.String()
	switch r.Format {
	case "":
		r.Format = FormatRaw
	case FormatRaw, FormatMarkdown, FormatText:
	default:
		return r, fail(CodeInvalidRequest, "format is %q: use 'raw', 'markdown' or 'text'", shown(string(r.Format)))
	}
	switch r.Method = FetchMethod(strings.ToUpper(string(r.Method))); r.Method {
	case "":
		r.Method = MethodGet
	case MethodGet, MethodHead:
	default:
		return r, fail(CodeInvalidRequest, "method is %q: fetch only reads, so use 'GET' or 'HEAD'", shown(string(r.Method)))
	}
	for _, b := range []struct {
		name string
		at   *int
		most int
	}{
		{"maxBytes", &r.MaxBytes, limits.WebBody},
		{"maxChars", &r.MaxChars, limits.WebContent},
		{"timeoutMs", &r.TimeoutMs, int(limits.WebTime.Milliseconds())},
	} {
		if *b.at < 0 {
			return r, fail(CodeInvalidRequest, "%s is %d: use 1 to %d, or leave it out", b.name, *b.at, b.most)
		}
		if *b.at == 0 || *b.at > b.most {
			*b.at = b.most
		}
	}
	return r, checkHeaders(r.Headers)
}

// ownHeaders are set by the connection, or decide what it does.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer",
	"transfer-encoding", "upgrade",
}

func checkHeaders(headers map[string]string) error {
	if len(headers) > limits.WebHeaders {
		return fail(CodeInvalidRequest, "there are %d headers; at most %d are allowed", len(headers), limits.WebHeaders)
	}
	total := 0
	for name, value := range headers {
		total += len(name) + len(value)
		lower := strings.ToLower(name)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return fail(CodeInvalidRequest, "%q is not a header's name", shown(name))
		case !httpguts.ValidHeaderFieldValue(value) || !utf8.ValidString(value):
			return fail(CodeInvalidRequest, "the value of header %s holds characters that headers cannot have, such as line breaks", shown(name))
		case slices.Contains(ownHeaders, lower) || strings.HasPrefix(lower, "proxy-"):
			return fail(CodeInvalidRequest, "header %s is set by the connection itself: leave it out", shown(name))
		}
	}
	if total > limits.WebHeaderAll {
		return fail(CodeInvalidRequest, "the headers have %d bytes; at most %d are allowed", total, limits.WebHeaderAll)
	}
	return nil
}

// complete checks a request and fills in what it leaves to the defaults.
func (r SearchRequest) complete() (SearchRequest, error) {
	if r.Query = strings.TrimSpace(r.Query); r.Query == "" {
		return r, fail(CodeInvalidRequest, "query is empty: pass the words to search for")
	}
	if n := utf8.RuneCountInString(r.Query); n > limits.WebQuery {
		return r, fail(CodeInvalidRequest, "query has %d characters; at most %d are allowed", n, limits.WebQuery)
	}
	if r.MaxResults < 0 || r.MaxResults > limits.WebSources {
		return r, fail(CodeInvalidRequest, "maxResults is %d: use 1 to %d, or leave it out", r.MaxResults, limits.WebSources)
	}
	if r.MaxResults == 0 {
		r.MaxResults = limits.WebSourcesIf
	}
	return r, nil
}

// with gives the request with the options over it.
func (r FetchRequest) with(o *FetchOptions) FetchRequest {
	if o == nil {
		return r
	}
	over(&r.Format, o.Format)
	over(&r.Method, o.Method)
	over(&r.MaxBytes, o.MaxBytes)
	over(&r.MaxChars, o.MaxChars)
	over(&r.TimeoutMs, o.TimeoutMs)
	over(&r.Provider, o.Provider)
	if o.Headers != nil {
		r.Headers = o.Headers
	}
	return r
}

// with gives the request with the options over it.
func (r SearchRequest) with(o *SearchOptions) SearchRequest {
	if o != nil {
		over(&r.MaxResults, o.MaxResults)
		over(&r.Provider, o.Provider)
	}
	return r
}

// over sets what an option says.
func over[T comparable](at *T, option T) {
	var none T
	if option != none {
		*at = option
	}
}
