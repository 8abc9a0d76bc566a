package heed_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// slots is a Transport with as many of them, whose answers come over a
// connection, and what became of its calls.
func slots(t *testing.T, n int) (ask func() *http.Response, ends func() []string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(faulty))
	t.Cleanup(s.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	var told journal
	tr := &heed.Transport{Base: base, Policy: policy.Policy{Limits: policy.Limits{Concurrency: n}}, Observe: told.note}
	ask = func() *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/ok", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	return ask, func() []string {
		reasons := []string{}
		for _, e := range told.of(heed.CallDone) {
			reasons = append(reasons, e.Reason)
		}
		return reasons
	}
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

// The first two of four are not watched, and their slots are lost for good.
func TestABodyThatIsNeverClosedGivesItsSlotBack(t *testing.T) {
	ask, ends := slots(t, 4)
	for range 4 {
		ask()
	}
	collect(t, func() bool { return len(ends()) >= 2 })
	for range 8 { // more than the slots that came back, so that each is used again
		ask().Body.Close()
	}
	want := append([]string{string(heed.Abandoned), string(heed.Abandoned)}, make([]string, 8)...)
	if diff := cmp.Diff(ends(), want); diff != "" {
		t.Errorf("how the calls ended (-got +want):\n%s", diff)
	}
}

func TestAnAnswerWhoseBodyIsWatchedHasItsReport(t *testing.T) {
	ask, _ := slots(t, 1)
	resp := ask()
	defer resp.Body.Close()
	if r, told := heed.ReportOf(resp); !told || r.Attempts != 1 {
		t.Errorf("got %+v, %v, want the report of one attempt", r, told)
	}
}

func TestABodyThatIsReadOrClosedIsNotAbandoned(t *testing.T) {
	ask, ends := slots(t, 1)
	for range 3 {
		finish(t, ask(), nil)
		ask().Body.Close()
		runtime.GC()
	}
	if diff := cmp.Diff(ends(), make([]string, 6)); diff != "" {
		t.Errorf("how the calls ended (-got +want):\n%s", diff)
	}
}
