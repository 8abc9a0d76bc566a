package sim

import (
	"net/http"
	"time"
)

// serveHang takes the request and never answers. After for= (default an
// hour), or when the caller leaves, the connection ends.
func serveHang(x *exchange) {
	rest(x.r.Context(), x.step.wait("for", time.Hour))
	x.outcome(0)
	panic(http.ErrAbortHandler)
}
