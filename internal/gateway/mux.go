package gateway

import (
	"net/http"
	"time"
)

// What the admin port says of a request that it has no answer to.
var (
	noPage = kind{"unknown-path", 404, "http_request_denied", "There is nothing at this path of the admin port",
		"Try /_heed/endpoints, /_heed/gates, /_heed/waiting, /_heed/calls, /metrics, /healthz or /readyz; callers send to the data port."}
	wrongMethod = kind{"wrong-method", 405, "http_request_denied", "The path does not take this method",
		"Allow lists those that it takes."}
)

// inProblems serves mux, and says in problems what it would say in plain text: that it
// has no such path, or no such method there.
func inProblems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI == "*" { // OPTIONS of the server as a whole, which mux calls a bad request
			no(noPage, "").write(w, time.Now())
			return
		}
		h, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		said := verdictOnly{header: http.Header{}}
		h.ServeHTTP(&said, r)
		if said.status == http.StatusMethodNotAllowed {
			w.Header()["Allow"] = said.header["Allow"]
			no(wrongMethod, "").write(w, time.Now())
			return
		}
		no(noPage, "").write(w, time.Now())
	})
}

// verdictOnly keeps the head of an answer.
type verdictOnly struct {
	header http.Header
	status int
}

func (v *verdictOnly) Header() http.Header         { return v.header }
func (v *verdictOnly) WriteHeader(status int)      { v.status = status }
func (v *verdictOnly) Write(p []byte) (int, error) { return len(p), nil }
