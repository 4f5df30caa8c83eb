package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/dsh-go/dsh/limits"
)

// Local is the id of the fetch provider that fetches from this machine.
const Local = "local"

// userAgent is how the program names itself to servers.
const userAgent = "dsh"

// local fetches from this machine.
type local struct {
	transport *http.Transport
	dialer    *net.Dialer
	public    bool // only public addresses
	ask       func(ctx context.Context, url string, method FetchMethod) error
}

var _ FetchProvider = (*local)(nil)

func newLocal(cfg Config, ask func(context.Context, string, FetchMethod) error) (*local, error) {
	l := &local{public: !cfg.AllowPrivate, ask: ask, dialer: &net.Dialer{}}
	l.transport = &http.Transport{
		DialContext:            l.dialer.DialContext,
		DisableKeepAlives:      true, // no connection outlives its request
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: limits.WebAnswerAll,
	}
	if cfg.Proxy != "" {
		proxy, err := proxyURL(cfg.Proxy)
		if err != nil {
			return nil, err
		}
		l.transport.Proxy = http.ProxyURL(proxy)
	} else if l.public {
		l.dialer.Control = publicOnly
	}
	return l, nil
}

func proxyURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
		return nil, errors.New("configure web: the proxy must be a URL such as http://localhost:3128; its scheme is http, https or socks5")
	}
	return u, nil
}

// ID is Local.
func (l *local) ID() string { return Local }

// Available is always true.
func (l *local) Available() bool { return true }

// Fetch follows redirects to the page and reads it.
func (l *local) Fetch(ctx context.Context, r FetchRequest) (FetchResult, error) {
	u, err := parseURL(r.URL)
	if err != nil {
		return FetchResult{}, err
	}
	for hops := 0; ; hops++ {
		resp, err := l.send(ctx, u, r)
		if err != nil {
			return FetchResult{}, err
		}
		next, err := redirect(u, resp)
		if err == nil && next == nil {
			return read(ctx, u, resp, r)
		}
		_ = resp.Body.Close() // nothing of it is read
		if err != nil {
			return FetchResult{}, err
		}
		if hops == limits.WebRedirects {
			return FetchResult{}, fail(CodeRedirectBlocked, "%s redirects more than %d times; the next would be to %s",
				shown(r.URL), limits.WebRedirects, shown(next.String()))
		}
		u = next
		if err := l.ask(ctx, u.String(), r.Method); err != nil {
			return FetchResult{}, err
		}
	}
}

// send sends one request. The response's body is to be closed.
func (l *local) send(ctx context.Context, u *url.URL, r FetchRequest) (*http.Response, error) {
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && l.public {
		if what := notPublic(addr); what != "" {
			return nil, refused(u, what)
		}
	}
	req, err := http.NewRequestWithContext(ctx, string(r.Method), u.String(), nil)
	if err != nil {
		return nil, fail(CodeInvalidURL, "%s cannot be requested: %w", shown(u.String()), err)
	}
	req.Header.Set("Accept", accepts(r.Format))
	for name, value := range r.Headers {
		req.Header.Set(name, value)
	}
	agent := userAgent
	if theirs := req.Header.Get("User-Agent"); theirs != "" {
		agent += " " + theirs
	}
	req.Header.Set("User-Agent", agent)
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, sendError(ctx, u, err)
	}
	return resp, nil
}

func accepts(f FetchFormat) string {
	if f == FormatRaw {
		return "*/*"
	}
	return "text/html, application/xhtml+xml, text/*;q=0.9, */*;q=0.5"
}

// redirect gives where a response sends the caller; nil: it is the page itself.
// The error refuses to go there.
func redirect(from *url.URL, resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := resp.Header.Get("Location")
	if location == "" {
		return nil, nil
	}
	ref, err := url.Parse(location)
	if err != nil {
		return nil, fail(CodeRedirectBlocked, "%s redirects to %q, which is not a URL", shown(from.String()), shown(location))
	}
	to, err := parseURL(from.ResolveReference(ref).String())
	if err != nil {
		return nil, fail(CodeRedirectBlocked, "%s redirects to what cannot be fetched: %w", shown(from.String()), err)
	}
	if !sameSite(from, to) {
		return nil, fail(CodeRedirectBlocked, "%s redirects to another origin: fetch %s if you want that", shown(from.String()), inFull(to))
	}
	return to, nil
}

// inFull is a URL that the reader is to use, so that it is not cut unless it
// would fill the message.
func inFull(u *url.URL) string {
	s := u.String() // escaped, so it is one line of visible ASCII, or almost
	if len(s) > limits.ErrorText/2 {
		return shown(s)
	}
	return s
}

// sameSite tells whether a redirect stays at its origin. URLs are canonical.
func sameSite(from, to *url.URL) bool {
	if from.Host != to.Host {
		return false
	}
	return from.Scheme == to.Scheme || from.Scheme == "http" && to.Scheme == "https" && from.Port() == ""
}

// sendError tells why a request had no response, without the addresses that
// names resolve to.
func sendError(ctx context.Context, u *url.URL, err error) error {
	if over := ended(ctx, CodeTimeout, "the fetch of "+shown(u.String())); over != nil {
		return over
	}
	if b, ok := blockedBy(err); ok {
		return refused(u, b.what)
	}
	var why string
	var (
		dns    *net.DNSError
		op     *net.OpError
		cert   *tls.CertificateVerificationError
		record tls.RecordHeaderError
		host   x509.HostnameError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		why = "the name " + shown(u.Hostname()) + " does not exist"
	case errors.As(err, &dns):
		why = "the name " + shown(u.Hostname()) + " could not be resolved"
	case errors.As(err, &cert), errors.As(err, &host):
		why = "the server's certificate is not valid for it"
	case errors.As(err, &record):
		why = "the server does not speak TLS: try http://"
	case errors.As(err, &op):
		why = "the server could not be reached: " + shown(op.Err.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		why = "the server closed the connection without an answer"
	default:
		why = shown(err.Error())
	}
	e := fail(CodeFetchFailed, "%s could not be fetched: %s", shown(u.String()), why)
	e.Err = err
	return e
}

func refused(u *url.URL, what string) error {
	host := strings.Trim(u.Hostname(), "[]")
	is := "resolves to "
	if _, err := netip.ParseAddr(host); err == nil {
		is = "is "
	}
	return fail(CodeBlockedURL, "%s %s%s, and only public addresses can be fetched. "+
		"The person who starts the program can allow others (--allow-private-web)", shown(host), is, what)
}
