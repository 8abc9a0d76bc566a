package check

import "slices"

// All returns every case, in the order in which they are shown.
func All() []Case {
	return slices.Concat(transient(), final(), retryAfter(), quota(), lies(), keys(), deadlines(), timeouts(), outages(),
		breakers(), fleet(), limits(), tokens(), jobs(), secrets())
}
