package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func TestPrivateAddressesAreRefused(t *testing.T) {
	site := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a private address was asked") })
	w := newWorld(t, Config{})
	for url, says := range map[string]string{
		site:                                "127.0.0.1 is a loopback address",
		"http://localhost:" + port(t, site): "localhost resolves to a loopback address",
		"http://[::1]:" + port(t, site):     "::1 is a loopback address",
		"http://[::ffff:127.0.0.1]:" + port(t, site): "is a loopback address",
		"http://[64:ff9b::7f00:1]/":                  "is a loopback address",
		"http://169.254.169.254/latest/meta-data":    "is a link-local address",
		"http://10.1.2.3/":                           "is a private address",
		"http://0.0.0.0:" + port(t, site):            "is an unspecified address",
	} {
		_, err := w.web.Fetch(t.Context(), FetchRequest{URL: url})
		msg := wantCode(t, err, CodeBlockedURL)
		if !strings.Contains(msg, says) || !strings.Contains(msg, "--allow-private-web") {
			t.Errorf("%s: %q does not say %q", url, msg, says)
		}
	}
}

// dns resolves every name to the addresses of answers, the next of them for each
// question of the family, the last for all further ones.
type dns struct {
	t       *testing.T
	conn    net.PacketConn
	ended   chan struct{}
	mu      sync.Mutex
	answers []netip.Addr
}

func newDNS(t *testing.T, answers ...string) *dns {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &dns{t: t, conn: conn, ended: make(chan struct{})}
	for _, a := range answers {
		d.answers = append(d.answers, netip.MustParseAddr(a))
	}
	go d.serve()
	t.Cleanup(func() { conn.Close(); <-d.ended })
	return d
}

func (d *dns) resolver() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", d.conn.LocalAddr().String())
	}}
}

func (d *dns) serve() {
	defer close(d.ended)
	buf := make([]byte, 1500)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(buf[:n]); err != nil {
			d.t.Error(err)
			return
		}
		m.Response, m.RCode, m.Additionals = true, dnsmessage.RCodeSuccess, nil
		m.Answers = d.answer(m.Questions[0])
		out, err := m.Pack()
		if err != nil {
			d.t.Error(err)
			return
		}
		d.conn.WriteTo(out, from)
	}
}

func (d *dns) answer(q dnsmessage.Question) []dnsmessage.Resource {
	if q.Type != dnsmessage.TypeA {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.answers[0]
	if len(d.answers) > 1 {
		d.answers = d.answers[1:]
	}
	return []dnsmessage.Resource{{
		Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class},
		Body:   &dnsmessage.AResource{A: a.As4()},
	}}
}

func TestNameOfPrivateAddress(t *testing.T) {
	w := newWorld(t, Config{})
	w.local.dialer.Resolver = newDNS(t, "10.9.8.7").resolver()
	_, err := w.web.Fetch(t.Context(), FetchRequest{URL: "http://innocent.test/"})
	msg := wantCode(t, err, CodeBlockedURL)
	if !strings.Contains(msg, "innocent.test resolves to a private address") || strings.Contains(msg, "10.9.8.7") {
		t.Error(msg)
	}
}

// A name that resolves to another address for the redirect gains nothing: each
// connection is checked at the address that it really goes to.
func TestRebindingName(t *testing.T) {
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/secret", http.StatusFound)
			return
		}
		io.WriteString(w, "still there")
	})
	name := "http://rebind.test:" + port(t, site)
	for addr, reached := range map[string]bool{"127.0.0.1": true, "127.0.0.2": false, "192.168.1.1": false} {
		w := newWorld(t, Config{})
		w.local.dialer.Resolver = newDNS(t, "127.0.0.1", addr).resolver()
		w.local.dialer.Control = func(network, address string, c syscall.RawConn) error {
			if strings.HasPrefix(address, "127.0.0.1:") { // stands for a public address
				return nil
			}
			return publicOnly(network, address, c)
		}
		page, err := w.web.Fetch(t.Context(), FetchRequest{URL: name})
		if reached {
			if err != nil || page.Body.Content != "still there" {
				t.Error(err, page)
			}
			continue
		}
		wantCode(t, err, CodeBlockedURL)
	}
}

func TestUnknownName(t *testing.T) {
	w := newWorld(t, Config{})
	w.local.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "x", Server: "10.0.0.53:53", IsNotFound: true}
	}}
	_, err := w.web.Fetch(t.Context(), FetchRequest{URL: "http://nobody.test/"})
	if msg := wantCode(t, err, CodeFetchFailed); !strings.Contains(msg, "nobody.test") || strings.Contains(msg, "10.0.0.53") {
		t.Error(msg)
	}
}
