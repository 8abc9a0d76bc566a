package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// story plays events of one endpoint at explicit times and collects the alerts.
type story struct {
	p   endpoint
	now time.Time
	got []string
}

func newStory() *story { return &story{now: noon.Truncate(time.Second)} }

// play repeats the events once a second and looks each time.
func (s *story) play(d time.Duration, events ...heed.Event) {
	for end := s.now.Add(d); s.now.Before(end); s.now = s.now.Add(time.Second) {
		for _, e := range events {
			e.Time = s.now
			s.p.note(&e)
		}
		for _, a := range s.p.look(s.now.Add(time.Second)) {
			s.got = append(s.got, a.name)
		}
	}
}

func (s *story) want(t *testing.T, names ...string) {
	t.Helper()
	if diff := cmp.Diff(s.got, names); diff != "" {
		t.Errorf("alerts (-got +want):\n%s", diff)
	}
}

var (
	works   = heed.Event{Kind: heed.AttemptDone, Class: classify.OK, Status: 200, Elapsed: 100 * time.Millisecond}
	fails   = heed.Event{Kind: heed.AttemptDone, Class: classify.Overloaded, Status: 503}
	retried = heed.Event{Kind: heed.AttemptDone, Class: classify.Throttled, Status: 429, Retry: true}
	gets    = heed.Event{Kind: heed.CallDone, Class: classify.OK, Status: 200}
	loses   = heed.Event{Kind: heed.CallDone, Class: classify.Overloaded, Reason: "deadline-exceeded"}
	opens   = heed.Event{Kind: heed.BreakerChanged, Breaker: "open"}
	closes  = heed.Event{Kind: heed.BreakerChanged, Breaker: "closed"}
)

func TestAnOutageWithoutATripIsToldOnce(t *testing.T) {
	s := newStory()
	s.play(time.Minute, works)
	s.play(5*time.Minute, fails)
	s.want(t, "outage_without_trip")
}

func TestASecondOutageIsToldAgain(t *testing.T) {
	s := newStory()
	s.play(time.Minute, fails)
	s.play(3*time.Minute, works)
	s.play(time.Minute, fails)
	s.want(t, "outage_without_trip", "outage_without_trip")
}

func TestAGapInAnOutageStartsNoNewEpisode(t *testing.T) {
	s := newStory()
	s.play(time.Minute, fails)
	s.play(30*time.Second, works, works)
	s.play(time.Minute, fails)
	s.want(t, "outage_without_trip")
}

func TestABreakerThatOpenedIsNoOutageWithoutATrip(t *testing.T) {
	s := newStory()
	s.play(10*time.Second, fails)
	s.play(time.Second, opens)
	s.play(time.Minute, fails)
	s.want(t)
}

func TestABreakerThatClosedAgainCountsForThirtySeconds(t *testing.T) {
	s := newStory()
	s.play(time.Second, opens, closes)
	s.play(25*time.Second, fails)
	s.want(t)
	s.play(10*time.Second, fails)
	s.want(t, "outage_without_trip")
}

func TestNineteenFailuresAreTooFewForAnOutage(t *testing.T) {
	s := newStory()
	s.play(19*time.Second, fails)
	s.play(time.Minute)
	s.want(t)
}

func TestHalfOfTheAttemptsIsNotMost(t *testing.T) {
	s := newStory()
	s.play(time.Minute, works, fails)
	s.want(t)
}

func TestThrottlesAndRefusalsAreNoOutage(t *testing.T) {
	for _, class := range []classify.Class{classify.Throttled, classify.Permanent, classify.Unauthorized} {
		s := newStory()
		s.play(2*time.Minute, heed.Event{Kind: heed.AttemptDone, Class: class})
		s.want(t)
	}
}

func TestRisingRetriesAreToldBeforeCallsFail(t *testing.T) {
	s := newStory()
	s.play(6*time.Minute, works, gets)
	s.play(2*time.Minute, retried, works, gets)
	s.want(t, "retries_rising")
}

func TestRetriesThatWereAlwaysThereAreNotRising(t *testing.T) {
	s := newStory()
	s.play(10*time.Minute, retried, works, gets)
	s.want(t)
}

func TestRetriesThatRiseWithErrorsAreNoEarlySign(t *testing.T) {
	s := newStory()
	s.play(6*time.Minute, works, gets)
	s.play(2*time.Minute, retried, works, loses)
	s.want(t)
}

func TestAQuietStartIsNotABaseForRisingRetries(t *testing.T) {
	s := newStory()
	s.play(time.Minute, retried, works, gets)
	s.want(t)
}

func TestATimeoutThatCutsHealthyAnswersIsToldOnce(t *testing.T) {
	s := newStory()
	s.p.timeouts = policy.Timeouts{Header: 2 * time.Second}
	cut := heed.Event{Kind: heed.AttemptDone, Class: classify.Transient, Elapsed: 2001 * time.Millisecond}
	s.play(10*time.Minute, works, works, works, works, works, works, works, works, works, cut)
	s.want(t, "timeout_short")
}

func TestATimeoutBelowTheMeasuredP99IsTold(t *testing.T) {
	s := newStory()
	slow := works
	slow.Elapsed = 4 * time.Second
	s.play(2*time.Minute, works, slow)
	s.p.timeouts = policy.Timeouts{Header: time.Minute, Attempt: 2 * time.Second} // reloaded
	s.play(time.Second)
	s.want(t, "timeout_short")
}

func TestTimeoutsInAnOutageDoNotMakeATimeoutShort(t *testing.T) {
	s := newStory()
	s.p.timeouts = policy.Timeouts{Header: 2 * time.Second}
	s.play(2*time.Minute, works)
	cut := heed.Event{Kind: heed.AttemptDone, Class: classify.Transient, Elapsed: 2 * time.Second}
	s.play(time.Second, opens)
	s.play(4*time.Minute, cut, cut, cut, cut)
	s.want(t)
}

func TestTheP99IsTheLowerBoundOfItsBucket(t *testing.T) {
	var l latency
	for range 98 {
		l.add(90 * time.Millisecond)
	}
	l.add(4 * time.Second)
	l.add(4 * time.Second)
	if got, want := l.p99(), 3*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
