package check

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// stalled never answers.
type stalled struct{}

func (stalled) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAnAdapterThatStallsWhenACaseBeginsIsGivenUp(t *testing.T) {
	before := plain.Transport
	plain.Transport = stalled{}
	defer func() { plain.Transport = before }()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := (Adapter{URL: "http://adapter"}).Open(t.Context(), Setting{}); err == nil {
			t.Error("a session began without an answer")
		}
		if took := time.Since(began); took > helloTimeout {
			t.Errorf("it took %s", took)
		}
	})
}
