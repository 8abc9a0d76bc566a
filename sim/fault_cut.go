package sim

import "strconv"

// serveCut promises the whole answer by Content-Length, sends at= bytes of it
// (default 1) and closes: the client sees an unexpected end, if it counts.
func serveCut(x *Exchange) { x.cut(x.operate(), x.step.count("at", 1)) }

func (x *Exchange) cut(an Answer, at int) {
	if at >= len(an.Body) {
		x.entry.note = sentWhole
		x.write(an)
		return
	}
	// Not by Set: a golden answer is shared by all who ask for it.
	an = an.With("Content-Length", strconv.Itoa(len(an.Body)))
	an.Body, an.Pace = an.Body[:at], Pace{}
	x.write(an)
	_ = x.flush() // so that what was written arrives; net/http ends the connection
}
