package gateway

import (
	"fmt"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// advise makes r tell, for an end by the clock, which bound it was, what came
// before, and which setting moves it. Advice that cannot help is worse than
// none: Heed-Budget only shortens what the endpoint grants.
func (x *exchange) advise(r *refusal, e *heed.Error) {
	b := x.bound()
	switch {
	case e.Reason == heed.DeadlineExceeded && x.tooEarly(e):
		r.Title = "The call may not begin within its budget"
		r.Detail = fmt.Sprintf("Heed-Not-Before is %s, which lies beyond %s. Nothing was sent. "+
			"Send the call again after that instant, or %s.", instant(x.asked.NotBefore), b.what, b.remedy)
	case e.Reason == heed.DeadlineExceeded:
		r.Detail = fmt.Sprintf("It was %s. %s %s, or try again later.", b.what, history(e), capital(b.remedy))
	case e.Reason == heed.QuotaWait:
		until := ""
		if !e.RetryAt.IsZero() {
			until = " until " + instant(e.RetryAt)
		}
		r.Detail = fmt.Sprintf("The API asked for a pause%s (Retry-After, or a quota that is used up), which lies beyond %s. "+
			"%s Try again after Retry-After, or %s.", until, b.what, history(e), x.sit(e.RetryAt, b.remedy))
	case x.keyUnheard(e.Reason):
		r.Detail = "Find out at the provider before sending it again. " + x.keyAdvice() + "."
	}
}

// keyUnheard tells whether the caller sent an idempotency key and the write was
// not repeated, since nobody said that the provider honours keys.
func (x *exchange) keyUnheard(why heed.Reason) bool {
	return why == heed.NotRepeatable && !x.route.keyed && x.r.Header["Idempotency-Key"] != nil
}

// keyAdvice says what would have let the write be repeated.
func (x *exchange) keyAdvice() string {
	return "The Idempotency-Key was passed on, but the endpoint does not know that the provider honours it; if so, write " +
		"idempotency: {header: Idempotency-Key} under endpoints." + x.route.Name + " in heed.yaml, and such a write is repeated"
}

// unsigned tells whether requests leave without any credential.
func (rt *route) unsigned() bool {
	return !rt.Passthrough && rt.Transport.Token == nil && rt.SecretQuery == ""
}

// bareAdvice says what a 401 is about that the API gave to a request without the
// credential of the caller.
func (x *exchange) bareAdvice() string {
	return "the Authorization or Cookie of the caller was not passed on, and the endpoint has no credential: write it under auth: of endpoints." +
		x.route.Name + " in heed.yaml, or auth: {kind: passthrough} there to pass on what callers send"
}

// bound is what limits the time of a call, and who can move it.
type bound struct{ what, remedy string }

func (x *exchange) bound() bound {
	granted := x.route.Transport.Policy.WithDefaults().Retry.Budget
	asked := x.asked.Budget
	if asked <= 0 || asked >= granted {
		return bound{"the budget of the endpoint, " + granted.String(), "raise retry.budget of the endpoint in heed.yaml (Heed-Budget cannot lengthen it)"}
	}
	name := "Heed-Budget"
	if x.asked.preferred {
		name = "Prefer: wait"
	}
	most := "as much as it needs"
	if granted != policy.Unlimited {
		most = "up to the " + granted.String() + " that the endpoint grants"
	}
	return bound{"the budget that the caller set with " + name + ", " + asked.String(), "give the call more time with " + name + ", " + most}
}

// sit is how to wait out a pause until at: in the queue, if there is one; more
// time helps where the endpoint grants as much.
func (x *exchange) sit(at time.Time, moreTime string) string {
	granted := x.route.Transport.Policy.WithDefaults().Retry.Budget
	switch {
	case x.table.Later != nil:
		return "hand the call over with Prefer: respond-async"
	case x.asked.Budget > 0 && granted != policy.Unlimited && time.Until(at) > granted:
		return "raise retry.budget of the endpoint in heed.yaml"
	}
	return moreTime
}

// tooEarly tells whether the call ended because it may not begin yet.
func (x *exchange) tooEarly(e *heed.Error) bool {
	return e.Report.Attempts == 0 && !x.asked.NotBefore.IsZero() && e.RetryAt.Equal(x.asked.NotBefore)
}

// history tells in a sentence what the call went through.
func history(e *heed.Error) string {
	s := "Nothing was sent"
	if n := e.Report.Attempts; n > 0 {
		s = fmt.Sprintf("Attempts: %d; the last one was %s", n, e.Class)
		switch f := lastFailure(e); {
		case f != classify.NoFailure && f != classify.BodyCut && f != classify.BodyTimeout:
			s += ", without an answer"
		case e.Status != 0:
			s += fmt.Sprintf(", with status %d", e.Status)
		}
		if e.Report.Rule != "" {
			s += fmt.Sprintf(" (rule %q)", e.Report.Rule)
		}
	}
	if e.Report.Waited >= time.Millisecond && e.Report.WaitSource != policy.NoWait {
		s += fmt.Sprintf("; it waited %s, the longest for %s", e.Report.Waited.Round(time.Millisecond), e.Report.WaitSource)
	}
	return s + "."
}

// instant is t in whole seconds, not before t.
func instant(t time.Time) string {
	return t.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second).Format(time.RFC3339)
}

func capital(s string) string { return string(s[0]-'a'+'A') + s[1:] }
