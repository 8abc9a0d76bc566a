// Package generic is the pack of an API without habits of its own: plain
// problem+json, Retry-After, X-RateLimit-*. It lives in package sim, because
// an API serves it unless it is told otherwise; here it has its place in the
// table of packs.
package generic

import "github.com/heedproject/heed/sim"

// Pack returns it.
func Pack() sim.Pack { return sim.Generic() }
