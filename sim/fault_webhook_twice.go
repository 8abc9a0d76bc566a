package sim

// spoilTwice: the message is sent, and a copy with the same id follows after= later (default at once).
func spoilTwice(d *delivery, s *step) { d.copies, d.apart = 1, s.wait("after", 0) }
