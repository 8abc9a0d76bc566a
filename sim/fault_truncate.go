package sim

// serveTruncate promises the whole answer by Content-Length, sends half of it
// and closes: the client sees an unexpected end, if it counts.
func serveTruncate(x *Exchange) {
	an := x.operate()
	x.cut(an, len(an.Body)/2)
}
