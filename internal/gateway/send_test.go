package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// failing is a store whose disk is out of order.
type failing struct {
	Store
	err error
}

func (f *failing) Enqueue(context.Context, time.Time, []queue.Call) ([]queue.Receipt, error) {
	return nil, f.err
}

func (f *failing) Get(context.Context, string) (queue.Facts, error) { return queue.Facts{}, f.err }

func TestNothingIsAcceptedThatIsNotOnDisk(t *testing.T) {
	bubble(t, nil, func(l *later) {
		broken := &failing{l.store, nil}
		for _, c := range []struct {
			err    error
			status int
			name   string
		}{
			{fmt.Errorf("write: %w", queue.ErrFull), 507, "queue-disk-full"},
			{fmt.Errorf("write: %w", queue.ErrStorage), 503, "queue-unavailable"},
			{fmt.Errorf("write: %w", queue.ErrCorrupt), 503, "queue-unavailable"},
			{errors.New("the network"), 503, "queue-unavailable"},
		} {
			broken.err = c.err
			l.set.Later.Store = broken
			wantProblem(t, l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async"), c.status, c.name)
			if a := l.do(l.Gateway, "GET", "/api/x", ""); a.StatusCode != 200 {
				t.Errorf("%v: a caller who waits got %d", c.err, a.StatusCode)
			}
			l.Ready(true)
			if a := l.operate("GET", "/readyz", "", nil); a.StatusCode != 503 || !strings.Contains(a.text, "queue") {
				t.Errorf("%v: readyz says %d %s", c.err, a.StatusCode, a.text)
			}
		}
		l.set.Later.Store = l.store
		l.async("POST", "/api/x", "b")
		if a := l.operate("GET", "/readyz", "", nil); a.StatusCode != 200 {
			t.Errorf("readyz says %d %s when it works again", a.StatusCode, a.text)
		}
	})
}

func TestAFullQueueSaysSo(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.set.Later.Store = &crowded{l.store}
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Prefer", "respond-async"), 503, "queue-full")
	})
}

type crowded struct{ Store }

func (c *crowded) Enqueue(_ context.Context, _ time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	full := make([]queue.Receipt, len(calls))
	for i := range full {
		full[i].Admission = queue.Full
	}
	return full, nil
}

func TestWhatMayBeRepeatedOnceIsRepeatedOnceOverAllClaims(t *testing.T) {
	rule := classify.Rule{ID: "once", When: classify.Match{Statuses: []classify.StatusRange{{From: 418, To: 418}}},
		Then: classify.Verdict{Class: classify.Transient, Executed: classify.No, Retry: classify.Once, Wait: 30 * time.Second}}
	classifier, bad := classify.New([]classify.Rule{rule})
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	bubble(t, nil, func(l *later) {
		l.set.Endpoints[0].Transport.Classifier = classifier
		l.api = answers(418, "once more")
		if s := l.end(l.async("GET", "/api/x", "")); s.State != "dead" || s.Attempts != 2 {
			t.Errorf("got %s after %d attempts, want dead after 2", s.State, s.Attempts)
		}
	})
}

func TestTheCallThatTripsTheBreakerIsNamed(t *testing.T) {
	bubble(t, func(_ *Settings, p *policy.Policy) { p.Breaker.Consecutive = 2 }, func(l *later) {
		var trips []heed.Event
		l.set.Endpoints[0].Transport.Observe = func(e heed.Event) {
			if e.Kind == heed.BreakerChanged && e.Breaker == "open" {
				trips = append(trips, e)
			}
		}
		l.api = answers(503, "down")
		at := l.async("GET", "/api/x", "", "Heed-Budget", "20s")
		l.end(at)
		if len(trips) == 0 || trips[0].CorrelationID != l.id(at) || trips[0].Endpoint != "api" {
			t.Errorf("got %+v, want the trip by %s", trips, l.id(at))
		}
	})
}

func TestAProbeDoesNotHoldTheOthersForItsWholeLease(t *testing.T) {
	change := func(_ *Settings, p *policy.Policy) {
		p.Breaker = policy.Breaker{Consecutive: 1, Open: 10 * time.Second, Jitter: -1, Lease: time.Minute}
	}
	bubble(t, change, func(l *later) {
		l.api = func(_ *http.Request, n int) (int, http.Header, string) {
			if n == 1 {
				return 503, nil, "down"
			}
			if n == 2 {
				time.Sleep(2 * time.Second) // the probe
			}
			return 200, nil, "up"
		}
		l.end(l.async("GET", "/api/trip", "", "Heed-Budget", "5s"))
		begun := time.Now()
		var all []string
		for range 10 {
			all = append(all, l.async("GET", "/api/x", ""))
		}
		for _, at := range all {
			l.end(at)
		}
		if d := time.Since(begun); d > 20*time.Second {
			t.Errorf("they were done after %v, want soon after the probe of 2 s", d)
		}
	})
}

func TestEndsOfTheTransportBecomeStatesOfTheQueue(t *testing.T) {
	now := time.Date(2026, 7, 15, 2, 0, 0, 0, time.UTC)
	at := now.Add(10 * time.Second)
	begun := heed.Report{Attempts: 1}
	for _, c := range []struct {
		name       string
		e          ended
		repeatable bool
		want       queue.State
		scope      queue.Scope
		until      time.Duration
	}{
		{"success", ended{class: classify.OK}, false, queue.Done, 0, 0},
		{"deferred", ended{reason: heed.Deferred, retryAt: at}, true, queue.Queued, queue.ScopeCall, 10 * time.Second},
		{"deferred with its key", ended{reason: heed.Deferred, retryAt: at, rep: heed.Report{KeyUntil: at}}, true, queue.Queued, queue.ScopeGate, 10 * time.Second},
		{"deferred for longer than its key", ended{reason: heed.Deferred, retryAt: at, rep: heed.Report{KeyUntil: now.Add(time.Second)}}, true, queue.Queued, queue.ScopeCall, 10 * time.Second},
		{"breaker", ended{reason: heed.BreakerOpen, retryAt: at, rep: heed.Report{KeyUntil: at, Breaker: "open"}}, false, queue.Queued, queue.ScopeGate, 10 * time.Second},
		{"behind a probe", ended{reason: heed.Deferred, retryAt: at, rep: heed.Report{KeyUntil: at, Breaker: "half_open"}}, false, queue.Queued, queue.ScopeGate, probing},
		{"retry budget", ended{reason: heed.RetryBudget, retryAt: at}, true, queue.Queued, queue.ScopeCall, 10 * time.Second},
		{"nobody said when", ended{reason: heed.Deferred}, true, queue.Queued, queue.ScopeCall, unheard},
		{"no credential for a while", ended{reason: heed.TokenFailed, retryAt: at}, true, queue.Queued, queue.ScopeGate, 10 * time.Second},
		{"no credential", ended{reason: heed.TokenFailed}, true, queue.Queued, queue.ScopeGate, untokened},
		{"beyond its expiry", ended{reason: heed.Deferred, retryAt: now.Add(2 * time.Hour)}, true, queue.Dead, 0, 0},
		{"given up before it was sent", ended{reason: heed.Canceled}, false, queue.Queued, 0, 0},
		{"a write given up on its way", ended{reason: heed.Canceled, executed: classify.Maybe, rep: begun}, false, queue.Unknown, 0, 0},
		{"a read given up on its way", ended{reason: heed.Canceled, executed: classify.Maybe, rep: begun}, true, queue.Queued, 0, 0},
		{"not repeatable", ended{reason: heed.NotRepeatable, executed: classify.Maybe, rep: begun}, false, queue.Unknown, 0, 0},
		{"invalid", ended{reason: heed.InvalidAnswer, class: classify.Invalid}, true, queue.Quarantined, 0, 0},
		{"stale", ended{reason: heed.StaleAnswer, class: classify.Stale}, true, queue.Quarantined, 0, 0},
		{"invalid to the last attempt", ended{reason: heed.AttemptsExhausted, class: classify.Invalid}, true, queue.Quarantined, 0, 0},
		{"exhausted", ended{reason: heed.AttemptsExhausted, class: classify.Transient}, true, queue.Dead, 0, 0},
		{"permanent", ended{reason: heed.PermanentFailure, class: classify.Permanent}, true, queue.Dead, 0, 0},
		{"one attempt was wanted", ended{reason: heed.RetryOff, executed: classify.No}, false, queue.Dead, 0, 0},
		{"one attempt, which may have arrived", ended{reason: heed.RetryOff, executed: classify.Maybe, rep: begun}, false, queue.Unknown, 0, 0},
	} {
		call := &queue.Call{Facts: queue.Facts{ID: "a", Endpoint: "api", Method: "POST", Repeatable: c.repeatable, Expires: now.Add(time.Hour)}}
		o := c.e.outcome(now, call)
		if o.State != c.want || o.Scope != c.scope || c.until > 0 && !o.Until.Equal(now.Add(c.until)) {
			t.Errorf("%s: got %s, scope %d, until %v; want %s, %d, %v", c.name, o.State, o.Scope, o.Until.Sub(now), c.want, c.scope, c.until)
		}
		if o.State.Broken() && (o.Note == nil || o.Note.Do == "" || !strings.HasPrefix(o.Note.Replay, "heed calls replay a") || o.Note.Why == "") {
			t.Errorf("%s: the note says %+v", c.name, o.Note)
		}
	}
}
