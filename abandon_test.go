package heed_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

func TestABodyThatIsNeverClosedGivesItsSlotBack(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(faulty))
	t.Cleanup(s.Close)
	var abandoned atomic.Int32
	base := &http.Transport{}
	tr := &heed.Transport{Base: base, Policy: policy.Policy{Limits: policy.Limits{Concurrency: 4}},
		Observe: func(e heed.Event) {
			if e.Kind == heed.CallDone && e.Reason == string(heed.Abandoned) {
				abandoned.Add(1)
			}
		}}
	ask := func() *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/ok", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
		}
		return resp
	}
	for range 4 {
		ask()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 8 { // never more than two at a time
			resp := ask()
			if resp == nil {
				return
			}
			if _, told := heed.ReportOf(resp); !told {
				t.Error("an answer that is guarded has no report")
			}
			resp.Body.Close()
		}
	}()
	collect(t, func() bool {
		select {
		case <-done:
			return abandoned.Load() >= 2
		default:
			return false
		}
	})
	if n := abandoned.Load(); n != 2 {
		t.Errorf("told of %d bodies, want 2: half of the slots are not watched", n)
	}
	base.CloseIdleConnections()
}

// collect collects garbage until something has come of it.
func collect(t *testing.T, done func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !done(); runtime.GC() {
		if time.Now().After(until) {
			t.Fatal("bodies that nobody can close any more keep their slots")
		}
	}
}

func TestABodyThatIsReadOrClosedIsNotAbandoned(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(faulty))
	t.Cleanup(s.Close)
	var ends []string
	tr := &heed.Transport{Policy: policy.Policy{Limits: policy.Limits{Concurrency: 1}},
		Observe: func(e heed.Event) {
			if e.Kind == heed.CallDone {
				ends = append(ends, e.Reason)
			}
		}}
	for range 3 {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/ok", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		finish(t, resp, err)
		runtime.GC()
	}
	if len(ends) != 3 || ends[0] != "" || ends[1] != "" || ends[2] != "" {
		t.Errorf("ends: got %q, want three without a reason", ends)
	}
}
