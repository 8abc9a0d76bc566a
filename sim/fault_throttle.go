package sim

import "time"

// serveThrottle answers as this provider does when a limit is reached, which
// is not 429 everywhere. after= and date= name the wait, default 1 s; the
// dialect may have no way to tell it. Nothing happened.
func serveThrottle(x *Exchange) {
	if len(x.step.waits) == 0 {
		x.close(time.Second)
		x.refuse(Refusal{Kind: Throttled, Wait: time.Second})
		return
	}
	x.write(x.stay(Refusal{Kind: Throttled}))
}
