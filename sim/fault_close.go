package sim

import "net/http"

// serveClose ends the connection in good order (FIN) before any answer: the
// client sees EOF. Nothing happened on the server.
func serveClose(x *Exchange) {
	x.outcome(0)
	panic(http.ErrAbortHandler)
}
