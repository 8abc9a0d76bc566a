// Package sim serves simulated providers: HTTP APIs that remember what was
// done, throttle, punish, lie and break exactly as told, the same every time.
//
// An API is one http.Handler. Put it behind httptest.NewServer in a test, or
// serve it to a person with curl:
//
//	api, err := sim.New(sim.World{
//		Rate: 5, Burst: 2,
//		Steps: "GET /v1/bibs/*: 503 x2, 429(after=1s), ok",
//	})
//
// A Pack is one provider; sim/pack has those that come with heed. Without one
// the Generic pack is served. A request goes this way:
//
//	case       whose world: /t/CASE/…, Sim-Case, CASE.localhost, CASE.api.stripe.com, a key that ends in case_CASE
//	pack       which provider: by host, by /PACK/…, or by who has such an operation
//	operation  by method and path, and by Operation.When
//	step       the first line of the script that matches hands out its next step, at most once each
//	authorize, limits, failures by chance       without a step, or with the step ok
//	idempotency key, then Operation.Do          once per key
//	answer     in the dialect of the pack, spoiled by the step
//
// Webhooks are sent for real, by POST, to the URLs of World.Webhooks,
// Case.AddWebhook and POST /_sim/webhooks, and to those that an operation of a
// pack registered: signed as the provider signs, a second after the event by
// default, repeated until the receiver takes them, and lost, late, doubled, out
// of order or forged where a line of the steps that begins with webhook says so.
// All that happens on the clock of the case; where it stands still, who moves it
// finds everything delivered.
//
// Every request is in the Journal, every effect in the Effects: of the case,
// as Go values from API.Case, or as JSON under /_sim/ and /t/CASE/_sim/.
//
// A Case is made when its id is first used. It has its own state, steps,
// journal and clock; all time that a client can see is measured on that clock:
// buckets, windows, waits, tokens, the dates in headers, what After planned.
// The clock may be scaled, or stand still until Case.Advance moves it.
// World.Begin are requests that a case has behind it when it begins. API.Begin,
// or POST /_sim/scenario, gives a case a world of its own, packs and limits
// included. API.Remove, or DELETE /t/CASE, forgets a case; of more than World.Cases the
// one that was idle for longest goes, and GET /_sim/cases counts those.
//
// Same seed, same world: every decision by chance, every id that is made, is a
// hash of the seed, the case, the caller, the operation and the number of the
// attempt, so that it does not depend on how requests of different callers
// interleave. Requests that one caller sends in parallel to one path are told
// apart by their order of arrival only.
//
// Limits: state is in memory and bounded; of 50,000 resources of a kind, 16,384
// callers or idempotency keys, 32,768 counted paths per case the oldest are
// forgotten; 256 webhooks may be registered and 8,192 messages be on their way. A
// body has at most 1 MiB. An operation runs alone in its case.
//
// The package shares no code with the calling side of heed: what it expects of
// a client is written down here a second time, so that a mistake there cannot
// hide here. It reads the answers of the golden exchanges of provider/golden,
// never their meanings.
package sim
