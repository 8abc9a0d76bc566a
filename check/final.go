package check

import (
	"net/http"
	"strconv"
)

// final are answers that repeating cannot change.
func final() []Case {
	var all []Case
	for _, status := range []int{400, 401, 403, 404, 409, 422} {
		text := strconv.Itoa(status)
		c := Case{ID: "final/" + text, Title: "GET: " + text, Quick: status == 404, Weight: 2,
			Rule:  Rule{"an answer that repeating cannot change is final", "RFC 9110 §15.5"},
			World: world("GET /v1/items/*: " + text + " x20"), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}},
			Renews: status == 401, Patient: true, Judge: every(sendsOnce, ends)}
		all = append(all, c)
	}
	return append(all,
		Case{ID: "final/503-404", Title: "GET: 503, then 404",
			Rule:  Rule{"retrying ends where the answer becomes final", "RFC 9110 §15.5"},
			World: world("GET /v1/items/*: 503, 404 x20"), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}},
			Needs: []Claim{Retries}, Patient: true, Judge: every(atMost(2), ends)},
		Case{ID: "final/429-400", Title: "GET: 429, then 400",
			Rule:  Rule{"retrying ends where the answer becomes final", "RFC 9110 §15.5"},
			World: world("GET /v1/items/*: 429(after=1s), 400 x20"), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}},
			Needs: []Claim{Retries}, Patient: true, Judge: every(atMost(2), ends)},
		Case{ID: "final/write-409", Title: "POST with an idempotency key: 409",
			Rule:  Rule{"a conflict is final", "RFC 9110 §15.5.10"},
			World: world("POST /v1/orders/*: 409 x20"), Ask: []Operation{order("order", true)},
			Needs: []Claim{Writes, Headers}, Patient: true, Judge: every(sends(1), ends)},
		Case{ID: "final/reported", Title: "GET: 404 is no success", Quick: true,
			Rule:  Rule{"an error is reported to the caller", "RFC 9110 §15.5"},
			World: world("GET /v1/items/*: 404 x20"), Ask: []Operation{{ID: "read", Path: "/v1/items/read"}},
			Patient: true, Judge: reportsFailure},
	)
}

// sendsOnce wants one request for the first operation; where it is refused a
// gateway that holds a token may renew it and send another one.
func sendsOnce(e *Evidence) Verdict {
	if tries, _ := e.First(); len(tries) == 2 && tries[0].Status == http.StatusUnauthorized && e.Minted > 0 {
		return passed("2 requests, the second one with a new token")
	}
	return sends(1)(e)
}

// atMost wants no more than n requests for the first operation.
func atMost(n int) judge {
	return func(e *Evidence) Verdict {
		tries, _ := e.First()
		if len(tries) > n {
			return failed("%s: it went on after number %d was answered %d", count(len(tries), "request"), n, tries[n-1].Status)
		}
		return passed("%s, the last of them answered %s", count(len(tries), "request"), last(tries))
	}
}
