package web

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
)

func TestFetch(t *testing.T) {
	var got http.Header
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "Application/JSON; charset=utf-8")
			io.WriteString(w, `{"method":"`+r.Method+`"}`)
		case "/page":
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<h1>Hi</h1><p>you</p>")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/notmodified":
			w.WriteHeader(http.StatusNotModified)
		case "/unsaid":
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "<!doctype html><p>who said HTML</p>")
		case "/octets":
			w.Header().Set("Content-Type", octets)
			io.WriteString(w, "just text\n")
		default:
			http.Error(w, "nothing at "+r.URL.Path, http.StatusNotFound)
		}
	})
	w := newWorld(t, Config{AllowPrivate: true})
	for path, want := range map[string]FetchResult{
		"/json":        {StatusCode: 200, ContentType: "application/json", Body: FetchBody{BodyText, `{"method":"GET"}`}},
		"/page":        {StatusCode: 200, ContentType: "text/html", Body: FetchBody{BodyHTML, "<h1>Hi</h1><p>you</p>"}},
		"/gone?x=1#f":  {StatusCode: 404, ContentType: "text/plain", Body: FetchBody{BodyText, "nothing at /gone\n"}},
		"/empty":       {StatusCode: 204, Body: FetchBody{Kind: BodyText}},
		"/notmodified": {StatusCode: 304, Body: FetchBody{Kind: BodyText}},
		"/unsaid":      {StatusCode: 200, Body: FetchBody{BodyHTML, "<!doctype html><p>who said HTML</p>"}},
		"/octets":      {StatusCode: 200, ContentType: octets, Body: FetchBody{BodyText, "just text\n"}},
	} {
		t.Run(path[1:], func(t *testing.T) {
			want.URL, _, _ = strings.Cut(site+path, "#")
			page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + path})
			if d := cmp.Diff(want, page); d != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, d)
			}
		})
	}
	page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + "/json", Method: MethodHead})
	want := FetchResult{URL: site + "/json", StatusCode: 200, ContentType: "application/json", Body: FetchBody{Kind: BodyText}}
	if d := cmp.Diff(want, page); d != "" || err != nil {
		t.Errorf("HEAD: %v (-want +got)\n%s", err, d)
	}
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: site + "/page", Format: FormatMarkdown, Headers: map[string]string{"user-agent": "mine/1", "X-Key": "k"}})
	if err != nil || got.Get("User-Agent") != "dsh mine/1" || got.Get("X-Key") != "k" || !strings.HasPrefix(got.Get("Accept"), "text/html") {
		t.Errorf("%v, headers %v", err, got)
	}
}

func TestContentIsCut(t *testing.T) {
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Repeat("é", limits.WebContent+1))
	})
	w := newWorld(t, Config{AllowPrivate: true})
	page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site})
	if err != nil || !page.Truncated || page.Body.Content != strings.Repeat("é", limits.WebContent) {
		t.Error(err, page.Truncated, len(page.Body.Content))
	}
	page, err = w.web.Fetch(t.Context(), FetchRequest{URL: site, MaxChars: 3})
	if err != nil || !page.Truncated || page.Body.Content != "ééé" {
		t.Error(err, page)
	}
}

func TestBodyIsBounded(t *testing.T) {
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/bomb": // 1 GiB of zeros in 1 MB
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "text/plain")
			z := gzip.NewWriter(w)
			block := make([]byte, 1<<20)
			for range 1024 {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
		case "/endless":
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		case "/says":
			w.Header().Set("Content-Length", "6000000")
			io.WriteString(w, "x")
		case "/exact":
			io.WriteString(w, strings.Repeat("x", 1000))
		}
	})
	w := newWorld(t, Config{AllowPrivate: true})
	for _, path := range []string{"/bomb", "/endless", "/says"} {
		t.Run(path[1:], func(t *testing.T) {
			_, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + path})
			wantCode(t, err, CodeTooLarge)
		})
	}
	_, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + "/exact", MaxBytes: 999})
	wantCode(t, err, CodeTooLarge)
	if page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + "/exact", MaxBytes: 1000}); err != nil || len(page.Body.Content) != 1000 {
		t.Error(err, page)
	}
}

// raw serves fixed bytes, whatever is asked.
func raw(t *testing.T, answer string) string {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, answer)
		conn.Close()
	})
}

func TestServerLies(t *testing.T) {
	w := newWorld(t, Config{AllowPrivate: true})
	for name, c := range map[string]struct{ answer, code, says string }{
		"short-body":   {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nabc", CodeFetchFailed, "before it was complete"},
		"no-answer":    {"", CodeFetchFailed, "without an answer"},
		"no-http":      {"SSH-2.0-OpenSSH_9.2\r\n", CodeFetchFailed, "could not be fetched"},
		"bad-gzip":     {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz", CodeFetchFailed, "could not be read"},
		"bad-chunk":    {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc", CodeFetchFailed, "could not be read"},
		"brotli":       {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", CodeUnsupportedType, "packed as br"},
		"pdf":          {"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: 3\r\n\r\nabc", CodeUnsupportedType, "application/pdf"},
		"octets":       {"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 8\r\n\r\n\x89PNG\r\n\x1a\n", CodeUnsupportedType, "image/png"},
		"unsaid":       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x00\x01\x02\x03", CodeUnsupportedType, octets},
		"missing-img":  {"HTTP/1.1 404 Not Found\r\nContent-Type: image/png\r\nContent-Length: 3\r\n\r\nabc", CodeUnsupportedType, "status 404"},
		"bad-type":     {"HTTP/1.1 200 OK\r\nContent-Type: a b;;\u202e\r\nContent-Length: 3\r\n\r\nabc", CodeUnsupportedType, "is a b, and"},
		"huge-headers": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", limits.WebAnswerAll+4096) + "\r\n\r\n", CodeFetchFailed, "could not be fetched"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.web.Fetch(t.Context(), FetchRequest{URL: raw(t, c.answer)})
			if msg := wantCode(t, err, c.code); !strings.Contains(msg, c.says) {
				t.Errorf("%q does not say %q", msg, c.says)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Error("a foreign origin was asked") })
	var asked []string
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		switch r.URL.Path {
		case "/a":
			w.Header().Set("Location", "b?x=1")
			w.WriteHeader(http.StatusMovedPermanently)
		case "/b":
			http.Redirect(w, r, "/c#part", http.StatusTemporaryRedirect)
		case "/c":
			io.WriteString(w, "here")
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/away":
			http.Redirect(w, r, elsewhere+"/there", http.StatusFound)
		case "/creds":
			http.Redirect(w, r, "http://u:secret@"+r.Host+"/", http.StatusFound)
		case "/file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/bad":
			w.Header().Set("Location", "http://[")
			w.WriteHeader(http.StatusFound)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		}
	})
	w := newWorld(t, Config{AllowPrivate: true})
	page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + "/a"})
	if err != nil || page.URL != site+"/c" || page.Body.Content != "here" {
		t.Error(err, page)
	}
	if d := cmp.Diff([]string{"GET /a", "GET /b?x=1", "GET /c"}, asked); d != "" {
		t.Error(d)
	}
	asked = nil
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: site + "/loop"})
	if msg := wantCode(t, err, CodeRedirectBlocked); !strings.Contains(msg, "more than 5 times") || len(asked) != limits.WebRedirects+1 {
		t.Error(msg, asked)
	}
	for path, says := range map[string]string{
		"/away": "fetch " + elsewhere + "/there if", "/creds": "user name", "/file": "file:///etc/passwd", "/bad": "not a URL",
	} {
		_, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + path})
		if msg := wantCode(t, err, CodeRedirectBlocked); !strings.Contains(msg, says) || strings.Contains(msg, "secret") {
			t.Errorf("%s: %q does not say %q", path, msg, says)
		}
	}
	if page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + "/nowhere"}); err != nil || page.StatusCode != http.StatusFound {
		t.Error(err, page)
	}
}

func TestSameSite(t *testing.T) {
	for _, c := range []struct {
		from, to string
		same     bool
	}{
		{"http://a.com/x", "http://a.com/y", true},
		{"http://a.com/x", "https://a.com/x", true},
		{"http://a.com:80/x", "https://a.com:443/x", true},
		{"https://a.com/x", "http://a.com/x", false},
		{"http://a.com/x", "http://a.com:81/x", false},
		{"http://a.com:8080/x", "https://a.com:8080/x", false},
		{"http://a.com/x", "https://a.com:8443/x", false},
		{"https://a.com/x", "https://www.a.com/x", false},
		{"https://A.com/x", "https://a.com./x", true},
	} {
		from, err := parseURL(c.from)
		to, err2 := parseURL(c.to)
		if err != nil || err2 != nil || sameSite(from, to) != c.same {
			t.Errorf("%s to %s: want %v", c.from, c.to, c.same)
		}
	}
}

func TestTime(t *testing.T) {
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/drip" {
			tick := time.NewTicker(5 * time.Millisecond)
			defer tick.Stop()
			for {
				io.WriteString(w, ".")
				w.(http.Flusher).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		}
		<-r.Context().Done()
	})
	w := newWorld(t, Config{AllowPrivate: true})
	for _, path := range []string{"/silent", "/drip"} {
		_, err := w.web.Fetch(t.Context(), FetchRequest{URL: site + path, TimeoutMs: 50})
		if msg := wantCode(t, err, CodeTimeout); !strings.Contains(msg, "50 ms") {
			t.Error(msg)
		}
	}
}

func TestAbort(t *testing.T) {
	waiting := make(chan struct{}, 1)
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begun")
		w.(http.Flusher).Flush()
		waiting <- struct{}{}
		<-r.Context().Done()
	})
	w := newWorld(t, Config{AllowPrivate: true})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-waiting; cancel() }()
	_, err := w.web.Fetch(ctx, FetchRequest{URL: site})
	wantCode(t, err, CodeAborted)

	// So it does when the service unloads.
	failed := make(chan error)
	go func() {
		_, err := w.web.Fetch(t.Context(), FetchRequest{URL: site})
		failed <- err
	}()
	<-waiting
	rec, err := w.hub.c.Fiber().Dispose(t.Context())
	if err != nil || rec.Drained == 0 || len(rec.Abandoned) > 0 {
		t.Error(rec, err)
	}
	wantCode(t, <-failed, CodeAborted)
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: site})
	wantCode(t, err, CodeUnavailable)
}

func TestConnectionErrors(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewTLSServer(nil)
	secure.Config.ErrorLog = discard
	defer secure.Close()
	w := newWorld(t, Config{AllowPrivate: true})
	for url, says := range map[string]string{
		gone.URL: "connection refused",
		strings.Replace(plain, "http:", "https:", 1): "try http://",
		secure.URL: "certificate is not valid",
	} {
		_, err := w.web.Fetch(t.Context(), FetchRequest{URL: url})
		if msg := wantCode(t, err, CodeFetchFailed); !strings.Contains(msg, says) {
			t.Errorf("%q does not say %q", msg, says)
		}
	}
}

func TestProxy(t *testing.T) {
	var asked []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.String())
		io.WriteString(w, "by proxy")
	})
	// The environment's proxy is not asked.
	t.Setenv("HTTP_PROXY", proxy)
	t.Setenv("http_proxy", proxy)
	target := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "direct") })
	page, err := newWorld(t, Config{AllowPrivate: true}).web.Fetch(t.Context(), FetchRequest{URL: target})
	if err != nil || page.Body.Content != "direct" {
		t.Error(err, page)
	}
	// A configured one is, at its private address; it resolves names, and
	// addresses are checked here.
	w := newWorld(t, Config{Proxy: proxy})
	page, err = w.web.Fetch(t.Context(), FetchRequest{URL: "http://name.example/x"})
	if err != nil || page.Body.Content != "by proxy" || !cmp.Equal(asked, []string{"http://name.example/x"}) {
		t.Error(err, page, asked)
	}
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: target})
	wantCode(t, err, CodeBlockedURL)
	for _, bad := range []string{"localhost:3128", "ftp://h", "http://", "::"} {
		if _, err := newLocal(Config{Proxy: bad}, nil); err == nil || !strings.Contains(err.Error(), "http, https or socks5") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestLongTargetIsBounded(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "a.com", Path: "/" + strings.Repeat("x", 3000)}
	if s := inFull(u); len(s) > 1000 {
		t.Error(len(s))
	}
	u.Path = "/" + strings.Repeat("x", 500)
	if s := inFull(u); s != u.String() {
		t.Error(s)
	}
}

func BenchmarkFetch(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			text := strings.Repeat("x", size)
			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, text) }))
			defer site.Close()
			l, err := newLocal(Config{AllowPrivate: true}, nil)
			if err != nil {
				b.Fatal(err)
			}
			r, _ := FetchRequest{URL: site.URL}.complete()
			for b.Loop() {
				if _, err := l.Fetch(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestTLS(t *testing.T) {
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		io.WriteString(w, r.Proto+" "+r.UserAgent())
	}))
	site.EnableHTTP2 = true
	site.StartTLS()
	defer site.Close()
	w := newWorld(t, Config{AllowPrivate: true})
	w.local.transport.TLSClientConfig = site.Client().Transport.(*http.Transport).TLSClientConfig
	page, err := w.web.Fetch(t.Context(), FetchRequest{URL: site.URL + "/old"})
	if err != nil || page.URL != site.URL+"/new" || page.Body.Content != "HTTP/2.0 dsh" {
		t.Error(err, page)
	}
}
