package sim

import (
	"net/http"
	"time"
)

// serveStale gives the true answer from a cache that forgot to refresh it: Age
// (RFC 9111 §5.1) and Cache-Status (RFC 9211) tell. age= defaults to an hour.
func serveStale(x *Exchange) {
	an := x.operate()
	age := x.step.wait("age", time.Hour)
	an.Set("Age", WholeSeconds(age))
	an.Set("Cache-Status", "sim; hit; ttl=-"+WholeSeconds(age))
	an.Set("Last-Modified", x.begun.Add(-age).UTC().Format(http.TimeFormat))
	x.write(an)
}
