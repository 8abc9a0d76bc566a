// Package sim is a small API that misbehaves on purpose, always in the same
// way: it throttles by a token bucket per credential, punishes early retries,
// fails by script, lies, cuts answers short, and remembers what was done.
//
// An API is one http.Handler. Put it behind httptest.NewServer in a test, or
// serve it to a person with curl:
//
//	api, err := sim.New(sim.World{
//		Rate: 5, Burst: 2,
//		Steps: "GET /v1/bibs/*: 503 x2, 429(after=1s), ok",
//	})
//
// A request goes this way: the first line of the steps that matches it hands
// out its next step, at most once each; without a step, or with the step ok,
// the world's own behaviour follows: failures by chance, the rate limit, and
// then the answer of the operation. Every request is in the Journal, every
// charge in the Effects. The same is told under /_sim/.
//
// Same seed, same world: every decision by chance is a hash of the seed, the
// caller, the operation and the number of the attempt, so that it does not
// depend on how requests of different callers interleave.
//
// The package shares no code with the calling side of heed: what it expects of
// a client is written down here a second time, so that a mistake there cannot
// hide here.
package sim
