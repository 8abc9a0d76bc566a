package sim

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// answer is what an operation says, before a fault spoils it.
type answer struct {
	status int
	header [][2]string
	body   []byte
}

func (a *answer) set(name, value string) { a.header = append(a.header, [2]string{name, value}) }

// object answers with v as JSON.
func object(status int, v any) answer {
	body, err := json.Marshal(v)
	if err != nil {
		return problem(http.StatusInternalServerError, "the answer cannot be written: "+err.Error())
	}
	return answer{status: status, body: append(body, '\n')}
}

// problem answers with an error as RFC 9457 has it.
func problem(status int, detail string) answer {
	an := object(status, struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(status), status, detail})
	an.set("Content-Type", "application/problem+json")
	return an
}

func (a answer) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	bare := a.status == http.StatusNoContent || a.status == http.StatusNotModified
	if !bare {
		h.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	for _, kv := range a.header {
		h.Set(kv[0], kv[1])
	}
	w.WriteHeader(a.status)
	if !bare {
		_, _ = w.Write(a.body) // a caller that left is no error of ours
	}
}

// wholeSeconds rounds up, so that nobody is told to come early.
func wholeSeconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
