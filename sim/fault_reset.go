package sim

import (
	"net"
	"net/http"
)

// serveReset ends the connection with a TCP reset before any answer: the
// client sees "connection reset by peer". Nothing happened on the server.
// Where the connection cannot be had (HTTP/2, a recorder) the handler aborts.
func serveReset(x *Exchange) {
	x.outcome(0)
	c, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0) // unsent data is dropped and RST sent in place of FIN
	}
	_ = c.Close()
}
