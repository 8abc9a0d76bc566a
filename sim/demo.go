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

// told is the answer of the demo operations.
func (a *API) told(x *exchange) answer {
	return object(200, struct {
		Message string `json:"message"`
		Path    string `json:"path"`
		Asked   int    `json:"asked"`
	}{
		"you got through; a path that you did not ask for yet fails twice first",
		x.r.URL.Path, x.entry.Attempt,
	})
}
