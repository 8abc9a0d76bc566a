// Package heed sends calls to other people's HTTP APIs so that they survive
// throttling, outages and misleading answers, without making them worse.
//
// Transport is an http.RoundTripper: put it into an http.Client and go on as
// before. Transport{} with nothing set is useful. Every caller of the same
// quota key shares one gate, so that what one learns from an answer (closed
// until, so much quota left, the server is down) all know.
//
//	client := &http.Client{Transport: &heed.Transport{}}
//
// One call is one request of the program; an attempt is one try of it on the
// wire. RoundTrip is the only place that waits and sends; the rooms beside it
// (policy, call, admit, classify, hint, backoff) only decide.
//
// # What comes back
//
// An answer of the server comes back as an answer, whatever its status: a 503
// that is left when the budget is used up is a *http.Response, with what heed
// made of it in the Report that [ReportOf] gets. Where there is no answer there
// is an [*Error], and so there is from Read where a body breaks off. Both have
// the same Report: its Reason is empty if the call got what it asked for, its
// Class says what the last attempt meant, Executed whether the server did it,
// and RetryAt when to come again. See the example of Report.
//
// An http.Client puts a *url.Error around an Error, and its text has the whole
// URL, with the query: log the Error inside it. A redirect that the Client
// follows is a call of its own.
//
// # Time
//
// A call ends with the first of three: policy.Retry.Budget (60 s by default),
// Call.Budget, and the deadline of the request's context. A wait that does not
// fit into what is left is not begun. So a Retry-After of two minutes ends a
// call at once unless the budget is longer. Prefer these to http.Client.Timeout:
// heed obeys that too, but when it fires the Client keeps the text of an Error
// only, so that errors.As finds none, and it cuts bodies that are still read,
// which the budget does not.
//
// # Writes
//
// GET, HEAD, OPTIONS, TRACE, PUT and DELETE are repeated (RFC 9110 §9.2.2). POST
// and PATCH are where the request provably did nothing, and where policy.Key
// names the header in which the provider honours idempotency keys and the
// request has one. A body without GetBody is kept while it is sent, up to 1 MiB
// in memory and up to 1 GiB in a file, so that it can be sent again.
//
// # Sharing
//
// Make one Transport for an API and share it: gates belong to a Transport, and
// two of them know nothing of each other. Close every body, since a slot of
// policy.Limits.Concurrency is taken until then.
//
// Where a rule of the Classifier looks into bodies, or the whole answer is
// verified, an attempt asks only for content codings that can be decoded here
// (gzip, deflate): of the caller's Accept-Encoding the others are left out.
package heed
