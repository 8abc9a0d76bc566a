package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Listen opens addr, host:port or unix:/path. Anybody who can reach an address
// other than loopback or a socket could use the credentials of the endpoints,
// so that such an address is refused unless guarded tells that tokens are
// asked for. key is where the address stands in heed.yaml.
func Listen(key, addr string, guarded bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenSocket(key, path)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; choose another address or port", key, err)
	}
	if !guarded && Exposed(l.Addr()) {
		l.Close()
		remedy := "list clients with a token"
		if key == "listen.admin" {
			remedy = "set listen.admin_token"
		}
		return nil, fmt.Errorf("%s: %s can be reached from other machines and nothing asks for a token: %s, or listen on 127.0.0.1 or unix:/path", key, addr, remedy)
	}
	return l, nil
}

// Exposed tells whether a listener at a can be reached from other machines.
func Exposed(a net.Addr) bool {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.Network() != "unix"
	}
	return !ap.Addr().Unmap().IsLoopback()
}

// listenSocket opens a socket that only its owner may use. One that a dead
// process left behind is taken over; one that answers is not.
func listenSocket(key, path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, fmt.Errorf("%s: another process serves %s; stop it or choose another path", key, path)
	}
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%s: %s exists and is no socket; choose another path", key, path)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("%s: remove the old socket: %w", key, err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return l, nil
}
