// Package check lets any HTTP client loose on a simulated provider that
// throttles, fails and lies, and grades what it did, by what was seen on the
// wire alone.
//
//	report, err := check.Run(ctx, check.Options{
//		Client: check.Command{Args: []string{"curl", "-sS", "--fail", "--retry", "5", "{url}"}},
//	})
//
// A run goes this way:
//
//	Hello      the client says what it claims to do; what it does not claim is not held against it
//	stage      one simulator, one world for each Case, and another host for those who are led away
//	play       for each case, many at a time: a session, waves of operations, the end of the session
//	Evidence   the journal of the simulator, the effects, what the client believes, what it wrote
//	Judge      a Verdict: a mark and the sentence that says why, with the numbers
//	Report     grades per group and over all, every case with its timeline
//
// A Client is how the program under test is reached: Command runs it once for
// each operation, Lines speaks JSON lines with one process for each session,
// Adapter talks HTTP to one that runs already, Program is a Go function in this
// process. Options.Via puts a gateway between the client and the world.
//
// # Gateways
//
// With Options.Via and Bare the gateway is the client under test. Its claims
// are told by Options.Claims. Cases of polling and of webhooks are n/a then: it is
// the program before a gateway that looks again, and that is called. A gateway
// that holds a bearer token gets it by POST from /oauth/token of the address where
// the worlds are served, for all cases; those that make it renew its token go one
// by one. It has one credential then, and with it one breaker and one budget, so
// check its tokens with an endpoint of its own and Only: tokens. What it answers
// with a failure counts as its output. A gateway before a client of another kind,
// such as Command, leaves all cases as they are.
//
// # Providers
//
// Some cases play one provider, which Case.Provider names and the client is told
// (Setting.Provider, HEED_CHECK_PROVIDER), so that it may use what it has for
// this one. They need a claim such as dialect=github.
//
// # Writing a case
//
//  1. Find the file of its group: transient.go, final.go, retryafter.go … A new
//     group is a new file and one more line in All.
//  2. Say what happens in World: world(steps) with the language of
//     sim.ParseSteps, or scripted(…) for answers that steps cannot write. Every
//     operation has a path of its own that ends in its ID; that is how its
//     requests are found again.
//  3. Say what the client is asked to do in Ask. Waves follow one another;
//     within a wave all is asked for at once. Workers have sessions and
//     credentials of their own.
//  4. Judge one rule and nothing else, so that a client that breaks another rule
//     passes: lower bounds with slack, upper bounds with seconds to spare. Where
//     the client did not do what would show it, the verdict is unclear, not
//     failed. Every sentence has the numbers.
//  5. Name the claims that it Needs. Keep it under five seconds for a client that
//     behaves.
//
// # Wrong clients
//
// The grader is graded: the tests have a client that breaks no rule, which must
// pass everything, and many that break one rule each, which must fail exactly
// the cases of that rule. behaved() in habits_test.go returns the habits of the
// former (how it waits, what it repeats, what it believes …), each a field; a
// wrong client is these with one field replaced. graded(t, habits, Options) lets
// it loose in a synctest bubble over a network in memory, so that the whole
// matrix takes a second and the same seed gives the same report. Where a habit
// that should be broken has no field yet, add one to habits. The table in
// wrong_test.go names the cases that each must fail; a case that no wrong client
// fails is an error. Where one fails a case of another rule, the case is mended,
// not the table: what its rule needs was not seen, so the verdict is unclear.
//
// # Busy machines
//
// The time that a client has for a case does not run while one of its programs
// starts, up to its first request, and only a few start at a time. Once a few
// programs sent nothing, those after them are waited for less. Whether a pause is
// too short is judged from the arrival of the request before, with 50 ms of slack.
//
// # Secrets
//
// The credentials of a run are looked for in all that a client writes, as they
// are and in base64, and are taken out of every sentence and timeline of a Report.
// In an outcome that a client writes as a JSON line only the error is searched.
//
// # Clients that are misunderstood
//
// A line or an answer that is not as the protocol has it says nothing of what the
// client does over HTTP: its case is unknown, and where that goes for all cases
// Run returns an error. Lines that mean to be no outcome are passed over, and
// noted in the Report. What a client wrote is told where it gave no answer.
//
// # Limits
//
// Requests of an operation are known by the last part of their path, so a
// client that changes paths is not understood. Pauses are told from the end of
// an answer to the arrival of the next request, as the simulator has noted them.
// What a client does between requests is not seen. Processes are found and ended
// by group and by a mark in their environment on Linux; elsewhere only the
// program itself is ended.
//
// The package shares no code with the calling side of heed: what is expected of
// a client is written down here a second time, so that heed cannot grade itself
// by its own mistakes.
package check
