package sim

// serveCutClean sends only the first at= bytes (default: half) and a
// Content-Length that agrees: no client can see it by counting.
func serveCutClean(x *Exchange) {
	an := x.operate()
	at := x.step.count("at", len(an.Body)/2)
	if at >= len(an.Body) {
		at, x.entry.note = len(an.Body), sentWhole
	}
	an.Body = an.Body[:at]
	x.write(an)
}
