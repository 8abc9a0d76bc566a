package sim

import "time"

// spoilLate: the message is sent for= later than usual (default 1 min), so that others
// overtake it.
func spoilLate(d *delivery, s *step) { d.wait += s.wait("for", time.Minute) }
