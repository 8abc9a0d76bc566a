package call

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// agreed is a policy whose backoff draws nothing: 1 s, 2 s, 4 s …
func agreed(change func(*policy.Policy)) *policy.Policy {
	p := policy.Policy{Backoff: policy.Backoff{Formula: policy.Exponential}}
	if change != nil {
		change(&p)
	}
	p = p.WithDefaults()
	return &p
}

func begin(p *policy.Policy, method string) *Call {
	c := Begin(p, start, 0, time.Time{})
	c.Method, c.Attempts = method, 1
	return &c
}

var (
	transient = classify.Verdict{Class: classify.Transient, Retry: classify.Idempotent}
	throttle  = classify.Verdict{Class: classify.Throttled, Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeKey}
	final     = classify.Verdict{Class: classify.Permanent}
)

func after(d time.Duration) hint.Hint { return hint.Hint{Wait: d, HasWait: true} }

func TestASuccessEndsTheCallWithoutAReason(t *testing.T) {
	c := begin(agreed(nil), "GET")
	got := c.Next(start, classify.Verdict{Class: classify.OK}, after(time.Hour), seeded())
	if diff := cmp.Diff(got, Decision{}); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// A write is repeated only with a key, or when it was certainly not done (RFC
// 9110 §9.2.2).
func TestWhatMayBeRepeated(t *testing.T) {
	retry := func(class classify.Class, done classify.Executed, how classify.Retry) classify.Verdict {
		return classify.Verdict{Class: class, Executed: done, Retry: how}
	}
	maybe := retry(classify.Transient, classify.Maybe, classify.Idempotent)
	refused := retry(classify.Transient, classify.No, classify.Idempotent)
	sameKey := retry(classify.Transient, classify.Maybe, classify.SameKey)
	cut := retry(classify.Truncated, classify.Yes, classify.Idempotent)
	for _, c := range []struct {
		method     string
		v          classify.Verdict
		keyed      bool
		replayable bool
		want       Reason
	}{
		{"GET", maybe, false, true, ""},
		{"GET", maybe, false, false, BodyNotReplayable},
		{"HEAD", maybe, false, true, ""},
		{"PUT", maybe, false, true, ""},
		{"DELETE", maybe, false, true, ""},
		{"POST", maybe, false, true, NotRepeatable},
		{"POST", maybe, true, true, ""},
		{"POST", maybe, true, false, BodyNotReplayable},
		{"POST", refused, false, true, ""},
		{"POST", throttle, false, true, ""},
		{"POST", throttle, false, false, BodyNotReplayable},
		{"PATCH", maybe, false, true, NotRepeatable},
		{"PATCH", maybe, true, true, ""},
		{"PATCH", refused, false, true, ""},
		{"POST", sameKey, true, true, ""},
		{"POST", sameKey, false, true, NotRepeatable},
		{"POST", cut, false, true, TruncatedAnswer},
		{"GET", cut, false, true, ""},
		{"GET", final, true, true, PermanentFailure},
		{"GET", retry(classify.Invalid, classify.Yes, classify.Never), false, true, InvalidAnswer},
		{"GET", retry(classify.Stale, classify.Yes, classify.Never), false, true, StaleAnswer},
		{"GET", classify.Verdict{}, false, true, PermanentFailure},
	} {
		x := begin(agreed(nil), c.method)
		x.Keyed, x.Replayable = c.keyed, c.replayable
		got := x.Next(start, c.v, hint.Hint{}, seeded())
		if got.Reason != c.want || (got.Action == Again) != (c.want == "") {
			t.Errorf("%s %v %v keyed %v replayable %v: got action %d, reason %q, want %q",
				c.method, c.v.Class, c.v.Retry, c.keyed, c.replayable, got.Action, got.Reason, c.want)
		}
	}
}

func TestACallSentOnceIsNotRepeated(t *testing.T) {
	c := begin(agreed(func(p *policy.Policy) { p.Retry.Off = true }), "GET")
	if got := c.Next(start, transient, hint.Hint{}, seeded()); got.Reason != RetryOff {
		t.Errorf("got %q, want %q", got.Reason, RetryOff)
	}
}

func TestTheCapOfAttemptsCountsThoseBegun(t *testing.T) {
	c := begin(agreed(func(p *policy.Policy) { p.Retry.Attempts = 3 }), "GET")
	for c.Attempts = 1; c.Attempts < 3; c.Attempts++ {
		if got := c.Next(start, transient, hint.Hint{}, seeded()); got.Action != Again {
			t.Fatalf("after attempt %d: got %q, want another attempt", c.Attempts, got.Reason)
		}
	}
	if got := c.Next(start, transient, hint.Hint{}, seeded()); got.Reason != AttemptsExhausted {
		t.Errorf("after attempt 3: got %q, want %q", got.Reason, AttemptsExhausted)
	}
}

func TestAHintBeyondTheCeiling(t *testing.T) {
	const asked = time.Hour
	for _, c := range []struct {
		mode   policy.OverCeiling
		queued bool
		want   Reason
		delay  time.Duration
	}{
		{policy.Fail, false, OverCeiling, asked},
		{policy.Fail, true, Deferred, asked},
		{policy.Defer, false, Deferred, asked},
		{policy.Clamp, false, "", 30 * time.Second},
	} {
		x := begin(agreed(func(p *policy.Policy) {
			p.Retry.OverCeiling, p.Retry.Ceiling, p.Hints.JitterMax = c.mode, 30*time.Second, -1
		}), "GET")
		x.Queued = c.queued
		got := x.Next(start, throttle, after(asked), seeded())
		want := Decision{Reason: c.want, At: start.Add(c.delay), Source: policy.WaitRetryAfter, Delay: c.delay}
		if c.want == "" {
			want.Action = Again
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s, queued %v (-got +want):\n%s", c.mode, c.queued, diff)
		}
	}
}

func TestTheCeilingIsComparedBeforeJitter(t *testing.T) {
	c := begin(agreed(func(p *policy.Policy) { p.Retry.Ceiling = 20 * time.Second }), "GET")
	for range 100 {
		if got := c.Next(start, throttle, after(20*time.Second), seeded()); got.Action != Again {
			t.Fatalf("got %q, want another attempt", got.Reason)
		}
	}
}

func TestAWaitThatDoesNotFitIsNotStarted(t *testing.T) {
	p := agreed(func(p *policy.Policy) { p.Retry.Budget = 10 * time.Second })
	for _, c := range []struct {
		now    time.Duration
		h      hint.Hint
		queued bool
		want   Reason
	}{
		{0, hint.Hint{}, false, ""},
		{9500 * time.Millisecond, hint.Hint{}, false, DeadlineExceeded},
		{9500 * time.Millisecond, hint.Hint{}, true, Deferred},
		{0, after(15 * time.Second), false, QuotaWait},
		{0, after(15 * time.Second), true, Deferred},
	} {
		x := begin(p, "GET")
		x.Queued = c.queued
		got := x.Next(start.Add(c.now), throttle, c.h, seeded())
		if got.Reason != c.want {
			t.Errorf("at %v with hint %v: got %q, want %q", c.now, c.h.Wait, got.Reason, c.want)
		}
		if c.want != "" && got.At.Before(start.Add(c.now+c.h.Wait)) {
			t.Errorf("at %v: got %v as the instant to try again, which is too early", c.now, got.At)
		}
	}
}

func TestAnAttemptNeedsMoreThanTheLeastTime(t *testing.T) {
	c := begin(agreed(func(p *policy.Policy) { p.Retry.Budget, p.Retry.MinAttempt = time.Second, 200*time.Millisecond }), "GET")
	for at, want := range map[time.Duration]bool{
		0: true, 799 * time.Millisecond: true, 800 * time.Millisecond: false, time.Second: false, time.Minute: false,
	} {
		if got := c.Fits(start.Add(at)); got != want {
			t.Errorf("at %v: got %v, want %v", at, got, want)
		}
	}
}

func TestTheDeadlineIsTheNearerOfBudgetAndParent(t *testing.T) {
	unlimited := agreed(func(p *policy.Policy) { p.Retry.Budget = policy.Unlimited })
	for _, c := range []struct {
		p            *policy.Policy
		budget       time.Duration
		parent, want time.Time
	}{
		{agreed(nil), 0, time.Time{}, start.Add(time.Minute)},
		{agreed(nil), time.Second, time.Time{}, start.Add(time.Second)},
		{agreed(nil), time.Hour, time.Time{}, start.Add(time.Minute)},
		{agreed(nil), 0, start.Add(time.Second), start.Add(time.Second)},
		{agreed(nil), 0, start.Add(time.Hour), start.Add(time.Minute)},
		{unlimited, 0, time.Time{}, time.Time{}},
		{unlimited, 0, start.Add(time.Hour), start.Add(time.Hour)},
		{unlimited, time.Second, time.Time{}, start.Add(time.Second)},
	} {
		if got := Begin(c.p, start, c.budget, c.parent).Deadline; !got.Equal(c.want) {
			t.Errorf("budget %v, parent %v: got %v, want %v", c.budget, c.parent, got, c.want)
		}
	}
}

func TestEscalatingHintsAreHonouredEach(t *testing.T) {
	p := agreed(func(p *policy.Policy) { p.Retry.Budget = policy.Unlimited })
	c, rng := begin(p, "GET"), seeded()
	for _, asked := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		got := c.Next(start, throttle, after(asked), rng)
		if got.Source != policy.WaitRetryAfter || got.Delay < asked || got.Delay > asked+time.Second {
			t.Errorf("hint %v: got a wait of %v for %s", asked, got.Delay, got.Source)
		}
	}
}

func TestSilenceAfterAHintGoesOnWithTheBackoffOfThatAttempt(t *testing.T) {
	c, rng := begin(agreed(nil), "GET"), seeded()
	c.Next(start, throttle, after(5*time.Second), rng)
	c.Next(start, throttle, after(5*time.Second), rng)
	got := c.Next(start, throttle, hint.Hint{}, rng)
	if got.Delay != 4*time.Second || got.Source != policy.WaitBackoff {
		t.Errorf("got %v for %s, want 4s for backoff", got.Delay, got.Source)
	}
}

func TestAHintIsAFloorUnderTheBackoff(t *testing.T) {
	c, rng := begin(agreed(func(p *policy.Policy) { p.Backoff.Base = 8 * time.Second }), "GET"), seeded()
	got := c.Next(start, throttle, after(time.Second), rng)
	if got.Delay < 8*time.Second || got.Delay > 8*time.Second+100*time.Millisecond || got.Source != policy.WaitBackoff {
		t.Errorf("got %v for %s, want 8s to 8.1s for backoff", got.Delay, got.Source)
	}
}

func TestAWaitIsNeverBelowTheHintNorFarAbove(t *testing.T) {
	p := agreed(func(p *policy.Policy) {
		p.Backoff.Formula, p.Backoff.Base = policy.Full, time.Millisecond
	})
	rng := seeded()
	for asked, top := range map[time.Duration]time.Duration{
		2 * time.Second: 200 * time.Millisecond, 30 * time.Second: time.Second,
	} {
		for range 10_000 {
			got := begin(p, "GET").Next(start, throttle, after(asked), rng)
			if extra := got.Delay - asked; got.Action != Again || extra < 0 || extra > top {
				t.Fatalf("hint %v: got a wait of %v", asked, got.Delay)
			}
		}
	}
}

func TestTheLongerOfRuleAndHeaderIsTheFloor(t *testing.T) {
	v := throttle
	v.Wait = 20 * time.Second
	for _, asked := range []hint.Hint{{}, after(time.Second)} {
		if got := begin(agreed(nil), "GET").Next(start, v, asked, seeded()); got.Delay < v.Wait {
			t.Errorf("hint %v: got %v, want at least the 20s of the rule", asked.Wait, got.Delay)
		}
	}
	if got := begin(agreed(nil), "GET").Next(start, v, after(30*time.Second), seeded()); got.Delay < 30*time.Second {
		t.Errorf("got %v, want at least the 30s of the header", got.Delay)
	}
}

func TestAnUnboundedWaitDoesNotOverflow(t *testing.T) {
	p := agreed(func(p *policy.Policy) { p.Retry.Budget, p.Retry.Ceiling = policy.Unlimited, policy.Unlimited })
	v := throttle
	v.Wait = policy.Unlimited
	if got := begin(p, "GET").Next(start, v, hint.Hint{}, seeded()); got.Delay != policy.Unlimited {
		t.Errorf("got %v, want %v", got.Delay, policy.Unlimited)
	}
}

func TestARetryAfterOfZeroStillPauses(t *testing.T) {
	p := agreed(func(p *policy.Policy) { p.Backoff.Base = time.Nanosecond })
	got := begin(p, "GET").Next(start, throttle, after(0), seeded())
	if got.Delay != 10*time.Millisecond || got.Source != policy.WaitBackoff {
		t.Errorf("got %v for %s, want the least pause of 10ms", got.Delay, got.Source)
	}
}

func TestACallThatEndsSaysWhenTryingAgainMakesSense(t *testing.T) {
	c := begin(agreed(func(p *policy.Policy) { p.Retry.Off = true }), "GET")
	got := c.Next(start, throttle, after(7*time.Second), seeded())
	if !got.At.Equal(start.Add(7 * time.Second)) {
		t.Errorf("got %v, want 7s from now", got.At)
	}
}

func TestEachSpecialRetryHappensOnce(t *testing.T) {
	for _, c := range []struct {
		how    classify.Retry
		class  classify.Class
		action Action
		then   Reason
	}{
		{classify.Refresh, classify.Unauthorized, Refresh, PermanentFailure},
		{classify.Revalidate, classify.Stale, Revalidate, StaleAnswer},
		{classify.Once, classify.Invalid, Again, InvalidAnswer},
	} {
		x := begin(agreed(nil), "GET")
		x.Renewable = true
		v := classify.Verdict{Class: c.class, Executed: classify.No, Retry: c.how}
		got := x.Next(start, v, hint.Hint{}, seeded())
		if got.Action != c.action {
			t.Errorf("%v: got action %d, want %d", c.how, got.Action, c.action)
		}
		if c.action != Again && !got.At.Equal(start) {
			t.Errorf("%v: got %v, want at once", c.how, got.At)
		}
		if again := x.Next(start, v, hint.Hint{}, seeded()); again.Action != End || again.Reason != c.then {
			t.Errorf("%v again: got action %d, reason %q, want the end for %q", c.how, again.Action, again.Reason, c.then)
		}
	}
}

func TestACredentialThatCannotBeRenewedIsFinal(t *testing.T) {
	v := classify.Verdict{Class: classify.Unauthorized, Executed: classify.No, Retry: classify.Refresh}
	if got := begin(agreed(nil), "GET").Next(start, v, hint.Hint{}, seeded()); got.Reason != PermanentFailure {
		t.Errorf("got %q, want %q", got.Reason, PermanentFailure)
	}
}

func TestWhatFollowsAtOnceMustFitToo(t *testing.T) {
	for _, how := range []classify.Retry{classify.Refresh, classify.Revalidate} {
		for queued, want := range map[bool]Reason{false: DeadlineExceeded, true: Deferred} {
			x := begin(agreed(nil), "GET")
			x.Renewable, x.Queued = true, queued
			v := classify.Verdict{Class: classify.Unauthorized, Executed: classify.No, Retry: how}
			if got := x.Next(start.Add(time.Minute), v, hint.Hint{}, seeded()); got.Action != End || got.Reason != want {
				t.Errorf("%v, queued %v: got action %d, reason %q, want %q", how, queued, got.Action, got.Reason, want)
			}
		}
	}
}

func TestARefreshDoesNotUseUpTheBackoff(t *testing.T) {
	c := begin(agreed(nil), "GET")
	c.Renewable = true
	c.Next(start, classify.Verdict{Class: classify.Unauthorized, Retry: classify.Refresh}, hint.Hint{}, seeded())
	if got := c.Next(start, transient, hint.Hint{}, seeded()); got.Delay != time.Second {
		t.Errorf("got %v, want the first step of 1s", got.Delay)
	}
}

func TestTheDecorrelatedWaitStartsAnewWithEachCall(t *testing.T) {
	p := agreed(func(p *policy.Policy) { p.Backoff.Formula = policy.Decorrelated })
	rng := seeded()
	for range 1000 {
		if got := begin(p, "GET").Next(start, transient, hint.Hint{}, rng); got.Delay > 3*time.Second {
			t.Fatalf("got %v for the first wait, want at most 3s", got.Delay)
		}
	}
}

func ExampleCall_Next() {
	p := policy.Policy{Backoff: policy.Backoff{Formula: policy.Exponential}}.WithDefaults()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := Begin(&p, now, 10*time.Second, time.Time{})
	down := classify.Verdict{Class: classify.Transient, Retry: classify.Idempotent}
	for {
		c.Attempts++
		d := c.Next(now, down, hint.Hint{}, nil)
		if d.Action == End {
			fmt.Println(d.Reason)
			break
		}
		fmt.Println(d.Delay, d.Source)
		now = d.At
	}
	// Output:
	// 1s backoff
	// 2s backoff
	// 4s backoff
	// deadline-exceeded
}

func TestAResumedCallClimbsWhereItWasLeft(t *testing.T) {
	p := agreed(func(p *policy.Policy) { p.Retry.Attempts = 3 })
	first := begin(p, "GET")
	first.Next(start, transient, hint.Hint{}, seeded())
	second := Begin(p, start, 0, time.Time{})
	second.Resume(first.Ladder())
	second.Attempts++
	if got := second.Next(start, transient, hint.Hint{}, seeded()).Delay; got != 2*time.Second {
		t.Errorf("the second wait is %v, want 2 s", got)
	}
	third := Begin(p, start, 0, time.Time{})
	third.Resume(second.Ladder())
	third.Attempts++
	if got := third.Next(start, transient, hint.Hint{}, seeded()).Reason; got != AttemptsExhausted {
		t.Errorf("got %q after three attempts in all, want %q", got, AttemptsExhausted)
	}
}
