package sim

const genericName = "generic"

// Generic returns the pack of an API without habits of its own: bibs to read
// and write, charges to make, jobs that take their time, paths that greet with
// failures. It is what an API serves unless it is told otherwise.
func Generic() Pack {
	return Pack{
		Name:     genericName,
		Access:   "none; callers are told apart by X-Api-Key, else by Authorization",
		Webhooks: Webhooks{Events: []string{"charge.succeeded", "job.complete", "job.canceled"}},
		Operations: []Operation{
			{Route: "GET /v1/bibs", Do: listBibs},
			{Route: "GET /v1/bibs/{id}", Do: getBib},
			{Route: "PUT /v1/bibs/{id}", Do: putBib},
			{Route: "POST /v1/charges", Do: postCharge, Keyed: true},
			{Route: "GET /v1/charges/{id}", Do: getCharge},
			{Route: "POST /v1/jobs", Do: postJob, Keyed: true},
			{Route: "GET /v1/jobs/{id}", Do: getJob},
			{Route: "DELETE /v1/jobs/{id}", Do: cancelJob},
			{Route: "GET /demo/{path...}", Do: greet},
			{Route: "GET /flaky/{path...}", Do: greet},
			{Route: "GET /health", Do: health, Free: true},
		},
	}
}

func health(*Exchange) Answer {
	return JSON(200, struct {
		Status string `json:"status"`
	}{"ok"})
}

// greet is the answer of the demo operations.
func greet(x *Exchange) Answer {
	return JSON(200, struct {
		Message string `json:"message"`
		Path    string `json:"path"`
		Asked   int    `json:"asked"`
	}{
		"you got through; a path that you did not ask for yet fails twice first",
		x.Path, x.Attempt(),
	})
}
