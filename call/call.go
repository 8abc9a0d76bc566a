// Package call follows one logical request from its first attempt to its one
// result. It knows the deadline budget, the attempts so far and the
// idempotency key, and says after each attempt what comes next, and why. It
// does nothing itself: it is told the time and the verdicts, and answers with
// an instant or an end.
//
// The package is pure.
package call
