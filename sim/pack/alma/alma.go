// Package alma simulates the REST API of Ex Libris Alma: users, their loans
// and requests, bibs and items, jobs and Analytics reports, as XML or JSON.
//
// What it holds to, from developers.exlibrisgroup.com and public clients: a
// key comes in Authorization: apikey X or in the query, and does not expire;
// answers are XML unless Accept or format asks for JSON; errors of a business
// kind are 400 with a number for a code; an institution may send 25 requests a
// second and so many a day, all its keys together, and a case is an
// institution; both are told by 429 and the code alone, with no Retry-After;
// X-Exl-Api-Remaining tells what is left of the day. Which zone's midnight
// begins a day is not documented: here it is UTC's.
//
// Analytics gives a ResumptionToken once, for the whole walk. So a page whose
// answer was lost is not given again, and a call after the last page is the
// error 420033. A list of bibs has errors among its elements, a list beyond
// its end has null for a total, a limit above 100 is 100 without a word.
//
// A request is NOT_STARTED, after 2 s IN_PROCESS and after 10 s on the hold
// shelf; a job is QUEUED, after 2 s RUNNING and after 6 s COMPLETED_SUCCESS.
// User u9 may borrow only with override=true (401604). Reports lie under
// /shared/. The throttle of a gateway in front, XML where JSON was asked for
// and a 200 with an error inside are among the golden exchanges.
//
// Codes that no client has shown are ours.
package alma

import (
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

const root = "/almaws/v1"

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "alma",
		Access:     "Authorization: apikey KEY, or ?apikey=KEY, any text; 401 without",
		Dialect:    sim.Dialect{Refuse: refuse, Quota: quota, Envelope: envelope},
		Limits:     limits,
		Credential: credential,
		Authorize:  authorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "keys that are off").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "users.list", Route: "GET " + root + "/users", Do: listUsers},
			{Name: "users.create", Route: "POST " + root + "/users", Do: createUser},
			{Name: "users.get", Route: "GET " + root + "/users/{user}", Do: getUser},
			{Name: "users.update", Route: "PUT " + root + "/users/{user}", Do: updateUser},
			{Name: "users.delete", Route: "DELETE " + root + "/users/{user}", Do: deleteUser},
			{Name: "loans.list", Route: "GET " + root + "/users/{user}/loans", Do: listLoans},
			{Name: "loans.create", Route: "POST " + root + "/users/{user}/loans", Do: createLoan},
			{Name: "loans.get", Route: "GET " + root + "/users/{user}/loans/{loan}", Do: getLoan},
			{Name: "loans.renew", Route: "POST " + root + "/users/{user}/loans/{loan}", Do: renewLoan},
			{Name: "requests.list", Route: "GET " + root + "/users/{user}/requests", Do: listRequests},
			{Name: "requests.create", Route: "POST " + root + "/users/{user}/requests", Do: createRequest},
			{Name: "requests.get", Route: "GET " + root + "/users/{user}/requests/{request}", Do: getRequest},
			{Name: "requests.cancel", Route: "DELETE " + root + "/users/{user}/requests/{request}", Do: cancelRequest},
			{Name: "bibs.list", Route: "GET " + root + "/bibs", Do: listBibs},
			{Name: "bibs.get", Route: "GET " + root + "/bibs/{mms}", Do: getBib},
			{Name: "items.list", Route: "GET " + root + "/bibs/{mms}/holdings/{holding}/items", Do: listItems},
			{Name: "items.get", Route: "GET " + root + "/bibs/{mms}/holdings/{holding}/items/{pid}", Do: getItem},
			{Name: "items.scan", Route: "POST " + root + "/bibs/{mms}/holdings/{holding}/items/{pid}", Do: scanItem},
			{Name: "items.find", Route: "GET " + root + "/items", Do: findItem},
			{Name: "jobs.run", Route: "POST " + root + "/conf/jobs/{job}", Do: runJob},
			{Name: "jobs.instance", Route: "GET " + root + "/conf/jobs/{job}/instances/{instance}", Do: getInstance},
			{Name: "analytics.report", Route: "GET " + root + "/analytics/reports", Do: report},
		},
	}
}

const (
	perSecond = "PER_SECOND_THRESHOLD"
	daily     = "DAILY_THRESHOLD"
)

// limits are those of an institution with 50 named users
// (knowledge.exlibrisgroup.com, API call limitation).
var limits = []rate.Limit{
	{Name: perSecond, Kind: rate.SlidingWindow, Capacity: 25, Window: time.Second, Scope: rate.Everyone},
	{Name: daily, Kind: rate.Daily, Capacity: 50_000, Scope: rate.Everyone},
}

// credential is the key, from the header or the query.
func credential(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "apikey") && key != "" {
		return key
	}
	return r.URL.Query().Get("apikey")
}

func authorize(x *sim.Exchange) *sim.Refusal {
	key := x.Credential()
	if _, off := sim.Rows[bool](x, "keys that are off").Get(key); key == "" || off {
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "API-key not defined or not configured to allow this API."}
	}
	return nil
}
