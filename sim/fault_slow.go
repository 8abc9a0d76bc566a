package sim

import "time"

// serveSlow waits before the usual answer, throttles included: for= (default 1 s), or
// by chance between for= and upto=.
func serveSlow(x *exchange) {
	d := x.step.wait("for", time.Second)
	if top := x.step.wait("upto", d); top > d {
		d += time.Duration(x.draw("slow") * float64(top-d))
	}
	if !rest(x.r.Context(), d) {
		x.outcome(0)
		return
	}
	x.usual()
}
