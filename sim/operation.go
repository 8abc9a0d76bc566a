package sim

import (
	"net/http"
	"strings"
)

// operation is one thing the API can do.
type operation struct {
	name    string // method and path, as told
	method  string
	pattern pattern
	free    bool // of the rate limit
	answer  func(*API, *exchange) answer
}

func op(name string, do func(*API, *exchange) answer) operation {
	method, path, _ := strings.Cut(name, " ")
	return operation{name: name, method: method, pattern: newPattern(path), answer: do}
}

// free is an operation without a limit.
func free(name string, do func(*API, *exchange) answer) operation {
	o := op(name, do)
	o.free = true
	return o
}

// operations lists all there is. The first that matches counts.
var operations = []operation{
	op("GET /v1/bibs", (*API).listBibs),
	op("GET /v1/bibs/{id}", (*API).getBib),
	op("PUT /v1/bibs/{id}", (*API).putBib),
	op("POST /v1/charges", (*API).postCharge),
	op("GET /v1/charges/{id}", (*API).getCharge),
	op("GET /demo/{path...}", (*API).told),
	op("GET /flaky/{path...}", (*API).told),
	free("GET /health", (*API).health),
}

// findOperation returns the operation of r, or nil, and the value in its path.
func findOperation(r *http.Request) (*operation, string) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range operations {
		if o := &operations[i]; o.method == method {
			if value, ok := o.pattern.match(r.URL.Path); ok {
				return o, value
			}
		}
	}
	return nil, ""
}

// unknown refuses what the API cannot do and says what it can.
func unknown(r *http.Request) answer {
	names := make([]string, len(operations))
	var allow []string
	for i, o := range operations {
		names[i] = o.name
		if _, ok := o.pattern.match(r.URL.Path); ok {
			allow = append(allow, o.method)
		}
	}
	status, detail := http.StatusNotFound, "there is no such operation"
	if allow != nil {
		status, detail = http.StatusMethodNotAllowed, "this path takes another method"
	}
	an := object(status, struct {
		Title      string   `json:"title"`
		Status     int      `json:"status"`
		Detail     string   `json:"detail"`
		Operations []string `json:"operations"`
		Simulator  []string `json:"simulator"`
	}{http.StatusText(status), status, detail, names, adminNames})
	an.set("Content-Type", "application/problem+json")
	if allow != nil {
		an.set("Allow", strings.Join(allow, ", "))
	}
	return an
}

func (a *API) health(*exchange) answer {
	return object(200, struct {
		Status string `json:"status"`
	}{"ok"})
}
