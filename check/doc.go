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
// that should be broken has no field yet, add one to habits.
//
// # Limits
//
// Requests of an operation are known by the last part of their path, so a
// client that changes paths is not understood. Pauses are told from the end of
// an answer to the arrival of the next request, as the simulator has noted them;
// whether one is too short is judged from the arrival of the request before,
// with 50 ms of slack, so that a busy machine fails nobody. What a client does
// between requests is not seen. Processes are found and ended by group and by a
// mark in their environment on Linux; elsewhere only the program itself is ended.
//
// The package shares no code with the calling side of heed: what is expected of
// a client is written down here a second time, so that heed cannot grade itself
// by its own mistakes.
package check
