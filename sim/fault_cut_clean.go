package sim

// serveCutClean sends only the first at= bytes (default: half) and a
// Content-Length that agrees: no client can see it by counting.
func serveCutClean(x *Exchange) {
	an := x.operate()
	an.Body = an.Body[:min(x.step.count("at", len(an.Body)/2), len(an.Body))]
	x.write(an)
}
