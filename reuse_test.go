package heed_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

// A Transport uses the memory of a call that has ended for another one. These
// tests look at calls that ended long ago while others are on their way.

func TestALateReadOrCloseDoesNotTouchAnotherCall(t *testing.T) {
	var events journal
	p := plays(says(200, "hello"))
	tr := &heed.Transport{Base: p, Policy: unpaced(), Observe: events.note}
	for range 100 {
		old, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, old, err)
		resp, err := tr.RoundTrip(request(t, "GET", "")) // takes the place of the first
		if err != nil {
			t.Fatal(err)
		}
		if n, err := old.Body.Read(make([]byte, 8)); n != 0 || err != io.EOF {
			t.Fatalf("a late read got %d bytes and %v, want 0 and EOF", n, err)
		}
		old.Body.Close()
		if inFlight := tr.Gates()[0].InFlight; inFlight != 1 {
			t.Fatalf("got %d in flight after a late close, want the call that is open", inFlight)
		}
		if _, body := finish(t, resp, err); body != "hello" {
			t.Fatalf("got %q", body)
		}
	}
	if got := len(events.of(heed.CallDone)); got != 200 {
		t.Errorf("got %d ends of 200 calls", got)
	}
}

func TestAReportIsThatOfItsOwnCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(503, ""), says(200, "a"), says(200, "b"))
		tr := &heed.Transport{Base: p, Policy: unpaced()}
		retried, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, retried, err)
		plain, err := tr.RoundTrip(request(t, "GET", ""))
		finish(t, plain, err)
		a, _ := heed.ReportOf(retried)
		b, _ := heed.ReportOf(plain)
		if a.Attempts != 2 || b.Attempts != 1 || a.CallID == b.CallID || b.CallID == 0 {
			t.Errorf("got %+v and %+v", a, b)
		}
	})
}

func TestARequestThatBaseKeepsStaysAsItWasSent(t *testing.T) {
	var kept []*http.Request
	p := plays(func(r *http.Request) (*http.Response, error) {
		kept = append(kept, r)
		return says(200, "ok")(r)
	})
	tr := &heed.Transport{Base: p, Policy: unpaced()}
	paths := []string{"/a", "/b", "/c"}
	for _, path := range paths {
		r := request(t, "GET", "")
		r.URL.Path = path
		resp, err := tr.RoundTrip(r)
		finish(t, resp, err)
	}
	for i, r := range kept {
		if r.URL.Path != paths[i] {
			t.Errorf("request %d is one for %s now", i, r.URL.Path)
		}
	}
}

func TestClosingWhileAnotherGoroutineReadsEndsACallOnce(t *testing.T) {
	var events journal
	p := plays(says(200, strings.Repeat("x", 4096)))
	tr := &heed.Transport{Base: p, Policy: policy.Policy{Limits: policy.Limits{Learn: policy.Learn{Off: true}, Concurrency: 64}}, Observe: events.note}
	const calls = 300
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range calls / 4 {
				resp, err := tr.RoundTrip(request(t, "GET", ""))
				if err != nil {
					t.Error(err)
					return
				}
				var both sync.WaitGroup
				both.Go(func() { io.Copy(io.Discard, resp.Body) })
				both.Go(func() { resp.Body.Close() })
				both.Go(func() { heed.ReportOf(resp) })
				both.Wait()
			}
		})
	}
	all.Wait()
	if got := len(events.of(heed.CallDone)); got != calls {
		t.Errorf("got %d ends of %d calls", got, calls)
	}
	if g := tr.Gates()[0]; g.InFlight != 0 {
		t.Errorf("got %d in flight, want none", g.InFlight)
	}
}

func TestWaitingMayBeAskedWhileCallsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := plays(says(200, "ok"))
		tr := &heed.Transport{Base: p, Policy: policy.Policy{Limits: policy.Limits{Rate: 100, Burst: 1}}}
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				resp, err := tr.RoundTrip(request(t, "GET", ""))
				finish(t, resp, err)
			})
		}
		seen := 0
		for range 100 {
			time.Sleep(3 * time.Millisecond)
			for _, w := range tr.Waiting() {
				if w.CallID == "" || w.Attempt != 1 {
					t.Errorf("got %+v, want a named call that waits for its first attempt", w)
				}
				seen++
			}
		}
		calls.Wait()
		if seen == 0 {
			t.Error("nobody was seen waiting")
		}
	})
}

// The timer of an attempt goes on to the next one. Of many attempts side by
// side, those that get no answer end, and none before its time.
func TestEveryAttemptEndsByItsOwnTimeAndByNoOther(t *testing.T) {
	const patience = 2 * time.Millisecond
	type begun struct{}
	var n atomic.Int64
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		if n.Add(1)%3 != 0 {
			return says(200, "ok")(r)
		}
		<-r.Context().Done()
		if took := time.Since(r.Context().Value(begun{}).(time.Time)); took < patience {
			t.Errorf("an attempt ended after %v, want the %v it may take", took, patience)
		}
		return nil, r.Context().Err()
	})
	pol := unpaced()
	pol.Retry.Off, pol.Breaker.Off = true, true
	pol.Timeouts.Attempt = patience
	tr := &heed.Transport{Base: base, Policy: pol}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 60 {
				ctx := context.WithValue(t.Context(), begun{}, time.Now())
				if resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(ctx)); err == nil {
					resp.Body.Close()
				}
				free := context.WithValue(context.Background(), begun{}, time.Now())
				if resp, err := tr.RoundTrip(request(t, "GET", "").WithContext(free)); err == nil {
					resp.Body.Close()
				}
			}
		})
	}
	wg.Wait()
}
