package sim

import (
	"strconv"
	"time"
)

// serveStall sends the header and the first bytes of the true answer, at= many
// (default none), then nothing for for= (default 1 s), then the rest.
func serveStall(x *Exchange) {
	if r := x.hold(); r != nil {
		x.refuse(*r)
		return
	}
	an := x.operate()
	whole := an.Body
	at := min(x.step.count("at", 0), len(whole))
	an.Set("Content-Length", strconv.Itoa(len(whole)))
	an.Body, an.Pace = whole[:at], Pace{}
	x.write(an)
	x.entry.bytesOut = int32(at)
	if x.flush() != nil || !x.rest(x.step.wait("for", time.Second)) {
		return
	}
	n, _ := x.w.Write(whole[at:]) // a caller that left is no error of ours
	x.entry.bytesOut += int32(n)
}
