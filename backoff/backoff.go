// Package backoff computes how long to wait before the next attempt when the
// server says nothing about it.
//
// Every formula clamps to the cap before the wait becomes a duration, so that
// no attempt number overflows, and jitter never leads above the cap. The
// generator is handed in: the same seed gives the same schedule.
//
// The package is pure.
package backoff
