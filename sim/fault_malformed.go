package sim

// serveMalformed gives the true answer with its last byte that counts
// replaced, as a generator does that was interrupted: 200, right length, and
// no parser takes it.
func serveMalformed(x *Exchange) {
	an := x.operate()
	body := append([]byte(nil), an.Body...)
	for i := len(body) - 1; i >= 0; i-- {
		if body[i] > ' ' {
			body[i] = ','
			break
		}
	}
	if len(body) == 0 {
		body = []byte("{,")
	}
	an.Body = body
	x.write(an)
}
