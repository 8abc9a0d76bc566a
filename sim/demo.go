package sim

// demoSteps greet every new path of a caller with a failure and a throttle.
const demoSteps = `
GET /demo/{path...}:  503, 429(after=1s), ok
GET /flaky/{path...}: 503, 429(after=1s), ok
`

// Demo returns the world of a first look: GET of any path under /demo or
// /flaky answers 503, then 429 with Retry-After: 1, then 200 with a line that
// tells how often it was asked.
func Demo() *API {
	a, err := New(World{Seed: 1, Rate: 20, Burst: 20, Steps: demoSteps})
	if err != nil {
		panic(err) // the world is a constant; a test makes it
	}
	return a
}
