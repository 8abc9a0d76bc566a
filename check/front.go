package check

import (
	"net/http"
	"sync/atomic"
)

// breaksOff is a proxy that sends half of the first answer in chunks and then
// closes the connection, without the chunk that would say that this was all.
func breaksOff(next http.Handler) http.Handler {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			w = &halved{ResponseWriter: w}
		}
		next.ServeHTTP(w, r)
	})
}

// halved writes half of what is written first, and ends the connection.
type halved struct{ http.ResponseWriter }

// Write needs an answer without Content-Length, and no more than one write.
func (h *halved) Write(p []byte) (int, error) {
	h.Header().Del("Content-Length")
	if _, err := h.ResponseWriter.Write(p[:len(p)/2]); err == nil {
		_ = http.NewResponseController(h.ResponseWriter).Flush() // or net/http would count the bytes itself
	}
	panic(http.ErrAbortHandler)
}

// Unwrap is for http.ResponseController.
func (h *halved) Unwrap() http.ResponseWriter { return h.ResponseWriter }
