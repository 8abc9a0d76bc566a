// Package admit decides whether an attempt may leave now.
//
// A Gate is the state of one quota key: breaker, rate, quota, concurrency and
// retry budget, shared by all callers of the key. What one caller learns from
// an answer, all know. A Line in front of it orders the callers of this
// process: by priority, then fairly by tenant, then by age.
//
// Nothing here reads a clock or waits: every method is told now, and the
// answer is go, not before t, or no, because. Whoever asks does the waiting
// (the Transport sleeps, a queue stores the instant, a planner jumps there).
package admit
