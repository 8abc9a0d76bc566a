package observe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
)

// posts returns how often spans are posted to a collector that answers with
// status at first, and how that ends.
func posts(t *testing.T, status int) (n int, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if n++; n == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
		}
	}))
	defer server.Close()
	c := newCollector(server.URL)
	err = c.UploadTraces(t.Context(), []*otlp.ResourceSpans{{}})
	if stopped := c.Stop(t.Context()); stopped != nil {
		t.Fatal(stopped)
	}
	return n, err
}

func TestABusyCollectorGetsTheSpansLater(t *testing.T) {
	for _, status := range []int{429, 502, 503, 504} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			if n, err := posts(t, status); n != 2 || err != nil {
				t.Errorf("got %d posts and %v, want 2", n, err)
			}
		})
	}
}

func TestSpansThatTheCollectorMayHaveAreNotSentTwice(t *testing.T) {
	if n, err := posts(t, http.StatusInternalServerError); n != 1 || err == nil {
		t.Errorf("got %d posts and %v, want 1 and an error", n, err)
	}
}
