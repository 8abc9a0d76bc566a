package observe_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/observe"
)

func TestACallThatGoesBackIntoItsQueueHasNotEnded(t *testing.T) {
	var log strings.Builder
	o, err := observe.New(observe.Options{Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	o.Observe(heed.Event{Kind: heed.CallDone, Endpoint: "api", Queued: true, Class: classify.Throttled, Reason: "deferred"})
	o.Observe(heed.Event{Kind: heed.CallDone, Endpoint: "api", Queued: true, Class: classify.OK})
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(w.Body.String(), `reason="deferred"`) || !strings.Contains(w.Body.String(), `heed_calls_total{class="ok",endpoint="api",reason="none"} 1`) {
		t.Errorf("got\n%s", w.Body)
	}
	if strings.Contains(log.String(), `"level":"WARN"`) {
		t.Errorf("somebody is warned:\n%s", log.String())
	}
}

func TestTheQueueIsCountedWhenItIsAskedFor(t *testing.T) {
	o, err := observe.New(observe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close(t.Context())
	var fails error
	read := func() (observe.QueueNumbers, error) {
		return observe.QueueNumbers{
			Counts: []observe.QueueCount{{"api", "queued", "", 7}, {"api", "dead", "permanent", 2}},
			Gates:  []observe.QueueGate{{Endpoint: "api", Gate: "main", Due: time.Now().Add(time.Hour), Closed: true}},
		}, fails
	}
	if err := o.Queue(read); err != nil {
		t.Fatal(err)
	}
	fails = errors.New("gone")
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`heed_queue_calls{endpoint="api",reason="",state="queued"} 7`,
		`heed_queue_calls{endpoint="api",reason="permanent",state="dead"} 2`,
		`heed_queue_oldest_due_seconds{endpoint="api",gate="main"} 0`,
		`heed_queue_gate_closed{endpoint="api",gate="main"} 1`,
		`heed_queue_read_errors_total 1`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("got no %s in:\n%s", want, w.Body)
		}
	}
	if o.Queue(read) == nil {
		t.Error("a second queue is taken")
	}
}
