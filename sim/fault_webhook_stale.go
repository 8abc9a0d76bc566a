package sim

import "time"

// spoilStale: the message has a signature that is age= old (default 1 h), as one that is
// played back.
func spoilStale(d *delivery, s *step) { d.aged = s.wait("age", time.Hour) }
