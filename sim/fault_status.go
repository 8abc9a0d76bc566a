package sim

import (
	"net/http"
	"strconv"
	"time"
)

// serveStatus answers with a status alone. after= adds Retry-After in whole
// seconds, date= the same as an HTTP-date; both are rounded up, as a second is
// the finest that the header can say (RFC 9110 §10.2.3). remaining= and reset=
// add what is left of the quota, and in how many seconds it comes back.
func serveStatus(x *exchange) {
	an := problem(x.step.status, http.StatusText(x.step.status)+", as the steps say")
	if d, ok := x.step.waits["after"]; ok {
		an.set("Retry-After", wholeSeconds(d))
		x.close(d)
	} else if d, ok := x.step.waits["date"]; ok {
		at := x.begun.Add(d + time.Second - 1)
		an.set("Date", x.begun.UTC().Format(http.TimeFormat))
		an.set("Retry-After", at.UTC().Format(http.TimeFormat))
		x.close(d)
	}
	if n, ok := x.step.counts["remaining"]; ok {
		an.set("X-RateLimit-Remaining", strconv.Itoa(n))
	}
	if d, ok := x.step.waits["reset"]; ok {
		an.set("X-RateLimit-Reset", wholeSeconds(d))
	}
	x.write(an)
}
