package sim

import (
	"net/http"
	"time"
)

// serveStale answers from a cache that forgot to refresh: a GET finds every
// resource that was written within age= (default an hour) as it was before its
// last write, or not at all. Age (RFC 9111 §5.1) and Cache-Status (RFC 9211)
// tell. Where nothing was written since, the answer is as now and the journal
// says so. Another method does its work.
func serveStale(x *Exchange) {
	age := x.step.wait("age", time.Hour)
	read := x.Request.Method == http.MethodGet || x.Request.Method == http.MethodHead
	if read {
		x.past = age
	}
	an := x.operate()
	if read && !x.undone {
		x.entry.note = notStale
	}
	an.Set("Age", WholeSeconds(age))
	an.Set("Cache-Status", "sim; hit; ttl=-"+WholeSeconds(age))
	an.Set("Last-Modified", x.begun.Add(-age).UTC().Format(http.TimeFormat))
	x.write(an)
}
