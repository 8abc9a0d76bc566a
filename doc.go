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
// Where a rule of the Classifier looks into bodies, or the whole answer is
// verified, an attempt asks only for content codings that can be decoded here
// (gzip, deflate): of the caller's Accept-Encoding the others are left out.
package heed
