package sim

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// adminNames are the paths by which the simulator is asked and told.
var adminNames = []string{
	"GET /_sim/journal", "GET /_sim/effects", "GET /_sim/steps", "POST /_sim/steps", "POST /_sim/reset",
}

// admin is the handler of /_sim/. Nothing there is throttled or journaled.
func (a *API) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_sim/journal", func(w http.ResponseWriter, _ *http.Request) { show(w, a.Journal()) })
	mux.HandleFunc("GET /_sim/effects", func(w http.ResponseWriter, _ *http.Request) { show(w, a.Effects()) })
	mux.HandleFunc("GET /_sim/steps", a.showSteps)
	mux.HandleFunc("POST /_sim/steps", a.takeSteps)
	mux.HandleFunc("POST /_sim/reset", func(w http.ResponseWriter, _ *http.Request) {
		a.Reset()
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { unknown(r).write(w) })
	return mux
}

func show(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // a reader that left is no error of ours
}

func (a *API) showSteps(w http.ResponseWriter, _ *http.Request) {
	a.mu.Lock()
	text := a.steps.String()
	a.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, text)
}

// takeSteps replaces the script by the body of the request.
func (a *API) takeSteps(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxScript))
	if err != nil {
		problem(http.StatusBadRequest, "the script could not be read, or is too long").write(w)
		return
	}
	err = a.SetSteps(string(text))
	if bad := new(StepsError); errors.As(err, &bad) {
		an := object(http.StatusBadRequest, struct {
			Title  string `json:"title"`
			Status int    `json:"status"`
			Detail string `json:"detail"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
			Remedy string `json:"remedy"`
		}{"Bad Request", 400, bad.Message, bad.Line, bad.Column, bad.Remedy})
		an.set("Content-Type", "application/problem+json")
		an.write(w)
		return
	}
	a.showSteps(w, r)
}
