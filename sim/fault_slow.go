package sim

import (
	"math"
	"time"
)

// serveSlow waits before the usual answer, throttles included: for= (default
// 1 s); by chance between for= and upto=; or by a lognormal distribution with
// median= and p99=, as the latency of real services is spread.
func serveSlow(x *Exchange) {
	d := x.step.wait("for", time.Second)
	if top := x.step.wait("upto", d); top > d {
		d += time.Duration(x.Draw("slow") * float64(top-d))
	}
	if median, ok := x.step.waits["median"]; ok {
		d = x.lognormal(median, x.step.wait("p99", 4*median))
	}
	if x.waiting(d) {
		x.usual()
	}
}

// lognormal draws by the method of Box and Muller; at most a day.
func (x *Exchange) lognormal(median, p99 time.Duration) time.Duration {
	if median <= 0 || p99 <= median {
		return median
	}
	const z99 = 2.3263478740408408 // of the normal distribution
	spread := math.Log(float64(p99)/float64(median)) / z99
	z := math.Sqrt(-2*math.Log(1-x.Draw("slow"))) * math.Cos(2*math.Pi*x.Draw("slow again"))
	return time.Duration(min(float64(median)*math.Exp(spread*z), float64(24*time.Hour)))
}
