package web

import (
	"errors"
	"net/netip"
	"syscall"
)

// special are the ranges that are not the public internet, by what is said of
// them: the special-purpose registries of IANA. Of IPv6 only 2000::/3 is public.
var special = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private address"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a shared address of a provider's network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private address"},
	{netip.MustParsePrefix("192.0.0.0/24"), "an address reserved for protocols"},
	{netip.MustParsePrefix("192.0.2.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "an address for benchmarks"},
	{netip.MustParsePrefix("198.51.100.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "an address for documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},

	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("fc00::/7"), "a private address"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	// Protocol assignments: Teredo, which carries any IPv4 address, benchmarks, ORCHID.
	{netip.MustParsePrefix("2001::/23"), "an address reserved for protocols"},
	{netip.MustParsePrefix("2001:db8::/32"), "an address for documentation"},
	// 6to4 carries any IPv4 address and is out of use.
	{netip.MustParsePrefix("2002::/16"), "an address of the 6to4 transition"},
	{netip.MustParsePrefix("3fff::/20"), "an address for documentation"},
}

var (
	public6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// notPublic says what an address is that is not a public unicast address; "": it
// is one. What carries an IPv4 address is what that is.
func notPublic(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) { // how hosts without IPv4 reach it
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, s := range special {
		if s.prefix.Contains(a) {
			return s.what
		}
	}
	if !a.IsValid() || a.Is6() && !public6.Contains(a) {
		return "a reserved address"
	}
	return ""
}

// blocked is the refusal to dial an address; the error of a dial wraps it.
type blocked struct{ what string }

// Error says what the address is, but not which: a name's is not the caller's to know.
func (b blocked) Error() string { return b.what + " is not dialled" }

// publicOnly is the last look at an address, when the socket for it is there and
// before it is connected: nothing can resolve it anew after that.
func publicOnly(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return blocked{"an address that cannot be read"}
	}
	if what := notPublic(a.Addr()); what != "" {
		return blocked{what}
	}
	return nil
}

// blockedBy gives the refusal that err wraps.
func blockedBy(err error) (blocked, bool) {
	var b blocked
	return b, errors.As(err, &b)
}
