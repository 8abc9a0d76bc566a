package sim

import "time"

// serveDrip sends the true answer bytes= at a time (default 1) with every=
// between (default 100 ms).
func serveDrip(x *Exchange) {
	if r := x.hold(); r != nil {
		x.refuse(*r)
		return
	}
	an := x.operate()
	an.Pace = Pace{Bytes: max(x.step.count("bytes", 1), 1), Every: x.step.wait("every", 100*time.Millisecond)}
	x.write(an)
}
