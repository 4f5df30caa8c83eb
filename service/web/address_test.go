package web

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestNotPublic(t *testing.T) {
	for addr, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "93.184.215.14": "", "172.15.255.255": "", "172.32.0.0": "", "100.63.255.255": "",
		"100.128.0.0": "", "198.17.255.255": "", "198.20.0.0": "", "223.255.255.255": "", "11.0.0.0": "", "192.169.0.0": "",
		"2606:4700::1111": "", "2a00:1450:4001:800::200e": "", "2001:4860:4860::8888": "",
		"::ffff:8.8.8.8": "", "64:ff9b::808:808": "",

		"0.0.0.0": "an unspecified address", "0.1.2.3": "an unspecified address", "::": "an unspecified address",
		"127.0.0.1": "a loopback address", "127.255.255.255": "a loopback address", "::1": "a loopback address",
		"10.0.0.1": "a private address", "10.255.255.255": "a private address", "172.16.0.0": "a private address",
		"172.31.255.255": "a private address", "192.168.0.1": "a private address", "fd00::1": "a private address", "fc00::": "a private address",
		"169.254.169.254": "a link-local address", "fe80::1": "a link-local address", "fe80::1%eth0": "a link-local address", "febf::1": "a link-local address",
		"100.64.0.0": "a shared address of a provider's network", "100.127.255.255": "a shared address of a provider's network",
		"224.0.0.1": "a multicast address", "239.255.255.255": "a multicast address", "ff02::1": "a multicast address",
		"192.0.2.1": "an address for documentation", "198.51.100.7": "an address for documentation", "203.0.113.7": "an address for documentation",
		"2001:db8::1": "an address for documentation", "3fff::1": "an address for documentation",
		"198.18.0.1": "an address for benchmarks", "198.19.255.255": "an address for benchmarks",
		"192.0.0.1": "an address reserved for protocols", "192.88.99.1": "a reserved address", "240.0.0.1": "a reserved address", "255.255.255.255": "a reserved address",
		"::ffff:10.0.0.1": "a private address", "::ffff:127.0.0.1": "a loopback address", "::ffff:169.254.169.254": "a link-local address",
		"64:ff9b::a00:1": "a private address", "64:ff9b::7f00:1": "a loopback address", "64:ff9b:1::808:808": "a reserved address",
		"::127.0.0.1": "a reserved address", "::7f00:1": "a reserved address",
		"2002:7f00:1::1": "an address of the 6to4 transition", "2002:808:808::1": "an address of the 6to4 transition",
		"2001:0:808:808::f5ff:fffe": "an address reserved for protocols", "2001:2::1": "an address reserved for protocols", "2001:20::1": "an address reserved for protocols",
		"100::1": "a reserved address", "4000::1": "a reserved address", "fec0::1": "a reserved address", "5f00::1": "a reserved address",
	} {
		t.Run(addr, func(t *testing.T) {
			if got := notPublic(netip.MustParseAddr(addr)); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got := notPublic(netip.Addr{}); got == "" {
		t.Error("the zero address is taken for a public one")
	}
}

// An IPv4 address is judged alike in all forms in which it can be dialled.
func TestFormsOfAnAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes"))
		a := netip.AddrFrom4(b)
		want := notPublic(a)
		if got := notPublic(netip.AddrFrom16(a.As16())); got != want {
			t.Errorf("mapped %v: got %q, want %q", a, got, want)
		}
		translated := netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
		if got := notPublic(translated); got != want {
			t.Errorf("%v: got %q, want %q", translated, got, want)
		}
		if !a.IsGlobalUnicast() && want == "" || a.IsPrivate() && want == "" {
			t.Errorf("%v is taken for a public address", a)
		}
	})
}

func TestPublicOnly(t *testing.T) {
	for address, refused := range map[string]bool{
		"8.8.8.8:443": false, "[2606:4700::1111]:443": false, "127.0.0.1:80": true, "[::1]:80": true,
		"[fe80::1%lo]:80": true, "nonsense": true, "/run/x.sock": true,
	} {
		if err := publicOnly("tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: got %v", address, err)
		}
	}
}
