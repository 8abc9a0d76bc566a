package sim

// spoilLost: the message is never sent; the provider believes that it was.
func spoilLost(d *delivery, _ *step) { d.lost = true }
