package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/heedproject/heed/mask"
)

func TestAddressesThatAreNotDialed(t *testing.T) {
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "127.0.0.1", "127.8.8.8", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"100.64.0.1", "169.254.1.1", "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200",
		"192.0.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.9", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
		"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "100::1", "2001::1",
		"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
		"64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::", "::ffff:0:127.0.0.1",
	} {
		d := Dialer{Endpoint: "api"}
		_, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort(s, "80"))
		b, ok := errors.AsType[*Blocked](err)
		if !ok || !b.Blocked() {
			t.Errorf("%s: got %v, want it blocked", s, err)
			continue
		}
		if !strings.Contains(b.Error(), "networks: [") || !strings.Contains(b.Error(), "endpoints.api") {
			t.Errorf("%s: the error does not say what to write: %v", s, b)
		}
	}
}

func TestWhatToWriteAboutABlockedAddressCanBeTold(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "10.20.30.40", "::1", "fd00:ec2::254"} {
		for endpoint, where := range map[string]string{"api": "endpoints.api", callbackEndpoint: "queue.callbacks"} {
			_, err := (&Dialer{Endpoint: endpoint}).DialContext(t.Context(), "tcp", net.JoinHostPort(addr, "80"))
			ip := netip.MustParseAddr(addr)
			want := fmt.Sprintf("write networks: [%s] under %s in heed.yaml", netip.PrefixFrom(ip, ip.BitLen()), where)
			if got := mask.Error(err); !strings.HasSuffix(got, want) {
				t.Errorf("%s of %s: got %q, want it to end in %q", addr, endpoint, got, want)
			}
		}
	}
}

func TestPublicAddressesAreDialed(t *testing.T) {
	for _, s := range []string{"8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::808:808", "2002:808:808::1"} {
		d := Dialer{}
		if b := d.check(s, netip.AddrPortFrom(netip.MustParseAddr(s), 443)); b != nil {
			t.Errorf("%s: %v", s, b)
		}
	}
}

func TestNetworksOpenWhatTheyName(t *testing.T) {
	for _, c := range []struct {
		networks, addr string
		open           bool
	}{
		{"10.0.0.0/8", "10.1.2.3", true},
		{"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"10.0.0.0/8", "192.168.0.1", false},
		{"10.1.2.3/8", "10.9.9.9", true}, // host bits do not matter
		{"::ffff:10.0.0.0/104", "10.1.2.3", true},
		{"127.0.0.0/8", "::1", false},
		{"::1/128", "::1", true},
		{"fe80::/10", "fe80::1%eth0", true},
		{"169.254.0.0/16", "169.254.1.1", true},
		{"169.254.0.0/16", "169.254.169.254", false}, // metadata wants to be named
		{"0.0.0.0/0", "169.254.169.254", false},
		{"169.254.169.254/32", "169.254.169.254", true},
		{"64:ff9b::/96", "64:ff9b::a9fe:a9fe", false},
	} {
		d := Dialer{Networks: []netip.Prefix{netip.MustParsePrefix(c.networks)}}
		b := d.check(c.addr, netip.AddrPortFrom(netip.MustParseAddr(c.addr).Unmap(), 80))
		if open := b == nil; open != c.open {
			t.Errorf("%s with %s: open is %v, want %v", c.addr, c.networks, open, c.open)
		}
	}
}

func TestOwnListenersAreNeverDialed(t *testing.T) {
	all := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	for _, c := range []struct{ own, to string }{
		{"127.0.0.1:8642", "127.0.0.1:8642"},
		{"0.0.0.0:8642", "127.0.0.1:8642"},
		{"[::]:8642", "127.0.0.1:8642"},
		{"[::]:8642", "[::1]:8642"},
		{"127.0.0.1:8642", "0.0.0.0:8642"},
	} {
		d := Dialer{Networks: all, Own: func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(c.own)} }}
		if b := d.check("x", netip.MustParseAddrPort(c.to)); b == nil || !b.Fixed {
			t.Errorf("%s with a listener at %s: got %v, want it blocked for good", c.to, c.own, b)
		}
	}
	d := Dialer{Networks: all, Own: func() []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8642")} }}
	if b := d.check("x", netip.MustParseAddrPort("127.0.0.1:9000")); b != nil {
		t.Errorf("another port: %v", b)
	}
}

// server accepts and closes, and tells its port.
func server(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func TestNameThatResolvesToLoopbackIsBlocked(t *testing.T) {
	to := server(t)
	d := Dialer{Endpoint: "api", Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{to.Addr()}, nil
	}}
	_, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort("rebind.test", port(to)))
	if b, ok := errors.AsType[*Blocked](err); !ok || b.Host != "rebind.test" || b.Addr != to.Addr() {
		t.Errorf("got %v, want the resolved address blocked", err)
	}
}

func TestNameIsResolvedOnceAndTheCheckedAddressIsDialed(t *testing.T) {
	to := server(t)
	asked := 0
	d := Dialer{
		Networks: []netip.Prefix{netip.PrefixFrom(to.Addr(), 32)},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			asked++
			if asked > 1 { // what a rebinding name would say next
				return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), to.Addr()}, nil
		},
	}
	c, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort("rebind.test", port(to)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.RemoteAddr().String(); got != to.String() || asked != 1 {
		t.Errorf("dialed %s after %d look-ups, want %s after 1", got, asked, to)
	}
}

func TestResolverErrorsKeepTheirType(t *testing.T) {
	d := Dialer{Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}}
	_, err := d.DialContext(context.Background(), "tcp", "nowhere.test:80")
	if dns, ok := errors.AsType[*net.DNSError](err); !ok || !dns.IsNotFound {
		t.Errorf("got %v, want a DNS error", err)
	}
}

func port(a netip.AddrPort) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}
