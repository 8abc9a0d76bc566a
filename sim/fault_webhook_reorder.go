package sim

import "time"

// spoilReorder: the message is held until the next one went, for for= at most (default 1 min).
func spoilReorder(d *delivery, s *step) { d.behind = max(s.wait("for", time.Minute), 1) }
