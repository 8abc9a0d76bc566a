package sim

import "strconv"

// serveTruncate promises the whole answer by Content-Length, sends half of it
// and closes: the client sees an unexpected end, if it counts.
func serveTruncate(x *exchange) {
	an := x.operate()
	an.set("Content-Length", strconv.Itoa(len(an.body)))
	an.body = an.body[:len(an.body)/2]
	x.write(an)
	_ = x.flush()
}
