// Package queue keeps calls on disk until the provider lets them through.
//
// A call is enqueued, and from the moment Enqueue returns it outlives the
// process. A worker claims it under a lease, makes one attempt, and settles
// the claim with what came of it: done, wait until an instant, or one of the
// ends that a person looks at (dead, quarantined, unknown). The queue computes
// no delay. It stores the instant or the reason that it is given; one place
// decides retries, and that is the transport.
//
// The gate of a quota key is one row: closing it touches no call, however many
// wait behind it. Gates are served in turn, each with a share, and inside a gate
// so are the tenants, see Line. Of one tenant a higher priority goes first, and
// every waiting call gains priority with age.
//
// What a call says (path, query, header, body, key) and what it was answered
// are sealed at rest, see Keys. What is needed to route and to count lies open,
// as Facts: nothing in Facts is secret, so that lists, logs and dashboards are
// made of Facts alone.
//
// At least once: a call whose lease was lost may have been sent. It is sent
// again if that cannot hurt (Repeatable), else it becomes unknown. A worker
// whose Send calls Begin tells the store what is about to leave; then a write
// that was claimed and not begun is not unknown, but queued again.
//
// Stores are folders below this one. Each passes the suite in queuetest.
package queue
