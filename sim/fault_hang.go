package sim

import (
	"net/http"
	"time"
)

// serveHang takes the request and never answers. After for= (default an
// hour), or when the caller leaves, the connection ends. Nothing happened.
func serveHang(x *Exchange) {
	if r := x.hold(); r != nil {
		x.refuse(*r)
		return
	}
	x.rest(x.step.wait("for", time.Hour))
	x.outcome(0)
	panic(http.ErrAbortHandler)
}
