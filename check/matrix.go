package check

import "slices"

// FleetGroup is the group of the cases that show how a fleet spreads its retries.
const FleetGroup = "fleet"

// All returns every case, in the order in which they are shown.
func All() []Case {
	return slices.Concat(transient(), final(), retryAfter())
}
