package sim

import (
	"net/http"
	"slices"
	"strconv"
)

// serveStatus answers with a status, in the words that the dialect has for
// it. after= adds the wait, date= the same as a date; remaining= and reset=
// add what is left of the quota, and in how many seconds it comes back.
// Nothing happened; a provider that keeps its failures gives this one again
// for the same idempotency key.
func serveStatus(x *Exchange) {
	r := Refusal{Kind: kindOf(x.step.status), Status: x.step.status}
	r.Detail = http.StatusText(r.Status) + ", as the steps say"
	an := x.stay(r)
	x.insist(&an, r)
	if n, ok := x.step.counts["remaining"]; ok {
		an.Set("X-RateLimit-Remaining", strconv.Itoa(n))
	}
	if d, ok := x.step.waits["reset"]; ok {
		an.Set("X-RateLimit-Reset", WholeSeconds(d))
	}
	x.save(an)
	x.write(an)
}

// stay writes r with the wait that the step names, and notes it for the journal.
func (x *Exchange) stay(r Refusal) Answer {
	d, ok := x.step.waits["after"]
	if !ok {
		if d, ok = x.step.waits["date"]; !ok {
			return x.Refuse(r)
		}
		r.Date = true
	}
	x.close(d)
	r.Wait = d
	return x.Refuse(r)
}

// insist adds the Retry-After that the step names to the words of a provider
// that has none: who writes after= wants to see it. Zero is a wait that
// providers really tell.
func (x *Exchange) insist(an *Answer, r Refusal) {
	if slices.ContainsFunc(an.Fields, func(f [2]string) bool { return f[0] == "Retry-After" }) {
		return
	}
	if d, ok := x.step.waits["after"]; ok {
		an.Set("Retry-After", WholeSeconds(d))
	} else if d, ok := x.step.waits["date"]; ok {
		r.Wait, r.Date = max(d, 1), true
		RetryAfter(x, an, r)
	}
}

func kindOf(status int) Kind {
	switch status {
	case 401:
		return Unauthorized
	case 403:
		return Forbidden
	case 404:
		return NotFound
	case 409:
		return Conflict
	case 413:
		return TooLarge
	case 429:
		return Throttled
	case 500:
		return Failed
	}
	if status >= 500 {
		return Overloaded
	}
	return BadRequest
}
