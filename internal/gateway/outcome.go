package gateway

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/call"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// ended is what the Transport made of a queued call.
type ended struct {
	reason   heed.Reason // empty: it got what it asked for
	class    classify.Class
	executed classify.Executed
	status   int
	retryAt  time.Time
	rep      heed.Report
	trail    []queue.Attempt
	answer   *queue.Result
	why      string // masked, in words
}

// outcome says what the queue does with the call. It is the one place where
// ends of the Transport become states of the queue.
func (e *ended) outcome(now time.Time, c *queue.Call) queue.Outcome {
	o := queue.Outcome{Reason: string(e.reason), Attempts: e.trail, Delay: e.rep.Ladder.Delay}
	for i, a := range e.trail {
		if o.Waited += a.Waited; i > 0 && a.Waited > 0 { // waited for under the lease
			o.Waits++
		}
	}
	if n := len(e.trail); n > 0 {
		e.trail[n-1].Climbed = climbed(e.rep.Ladder)
	}
	if len(e.trail) > 0 || e.class != classify.Unknown {
		o.Class = e.class.String()
	}
	if e.again() && e.odd() && e.oddities(c) >= mostOdd {
		e.reason = oddReasons[e.class]
		o.Reason = string(e.reason)
	}
	switch e.reason {
	case "":
		o.State, o.Answer = queue.Done, e.answer
		return o
	case heed.Deferred, heed.QuotaWait, heed.OverCeiling, heed.BreakerOpen, heed.RetryBudget, heed.DeadlineExceeded, heed.TokenFailed:
		if e.wait(now, c, &o); o.State == queue.Queued {
			return o
		}
	case heed.Canceled:
		if e.handBack(c, &o); o.State == queue.Queued {
			return o
		}
	case heed.NotRepeatable: // what was answered may tell a person whether it was done
		o.State, o.Answer = queue.Unknown, e.answer
	case heed.InvalidAnswer, heed.TruncatedAnswer, heed.StaleAnswer:
		o.State, o.Answer = queue.Quarantined, e.answer
	case heed.RetryOff:
		o.State, o.Answer = queue.Dead, e.answer
		if e.executed != classify.No && !c.Repeatable {
			o.State = queue.Unknown
		}
	default:
		o.State, o.Answer = queue.Dead, e.answer
	}
	if o.State == queue.Dead && e.odd() { // it was answered, time and again, with what is no answer
		o.State = queue.Quarantined
	}
	o.Note = e.note(now, c, &o)
	return o
}

// odd tells that the last answer was not what it claimed to be.
func (e *ended) odd() bool {
	return e.class == classify.Invalid || e.class == classify.Truncated || e.class == classify.Stale
}

// mostOdd is how many answers that are none a call gets before a person looks,
// where the policy has no retry.attempts, which counts all attempts: what is
// answered eight times with the same nonsense is not mended by a ninth request.
const mostOdd = 8

var oddReasons = map[classify.Class]heed.Reason{
	classify.Invalid: heed.InvalidAnswer, classify.Truncated: heed.TruncatedAnswer, classify.Stale: heed.StaleAnswer,
}

// again tells that the call would be sent once more.
func (e *ended) again() bool {
	switch e.reason {
	case heed.Deferred, heed.QuotaWait, heed.OverCeiling, heed.BreakerOpen, heed.RetryBudget, heed.DeadlineExceeded:
		return true
	}
	return false
}

// oddities counts the answers that were none, since the call was taken in or
// replayed.
func (e *ended) oddities(c *queue.Call) (n int) {
	earlier := c.Trail[max(len(c.Trail)-c.Ladder.Attempts, 0):]
	for _, trail := range [][]queue.Attempt{earlier, e.trail} {
		for _, a := range trail {
			for class := range oddReasons {
				if a.Class == class.String() {
					n++
				}
			}
		}
	}
	return n
}

func climbed(l call.Ladder) json.RawMessage {
	text, err := json.Marshal(l)
	if err != nil { // numbers and flags only
		return nil
	}
	return text
}

const (
	// unheard is the wait where nobody said how long.
	unheard = time.Second
	// untokened is for how long nothing is sent when no credential is given out:
	// that is for a person to mend, and no fault of the calls.
	untokened = 30 * time.Second
	// probing is how long the others wait while a probe is on its way. Its
	// lease is longer, but when it has succeeded nobody should wait that long.
	probing = 250 * time.Millisecond
	// early is how much earlier than the call itself its key may open, for the
	// call to wait with the key.
	early = time.Second
)

// wait keeps the call until it may be sent. Where the key is closed for all,
// the gate of the queue closes, and no other call is touched.
func (e *ended) wait(now time.Time, c *queue.Call, o *queue.Outcome) {
	until, key := e.retryAt, e.rep.KeyUntil
	switch {
	case e.reason == heed.TokenFailed && !until.After(now):
		until = now.Add(untokened)
		key = until
	case e.reason == heed.TokenFailed:
		key = until
	case !until.After(now):
		until = now.Add(unheard)
	}
	source := e.rep.WaitSource
	if e.reason == heed.TokenFailed {
		source = policy.WaitToken
	}
	if e.rep.Breaker == admit.HalfOpen.String() && key.After(now.Add(probing)) {
		key, until = now.Add(probing), now.Add(probing)
	}
	if key.After(until) && e.rep.KeySource != policy.NoWait { // a pause that was asked of all is longer than its own
		source = e.rep.KeySource
	}
	shut := key.After(now) && !until.After(key.Add(early))
	if !shut && !c.Expires.IsZero() && until.After(c.Expires) {
		o.State, o.Reason = queue.Dead, queue.ReasonExpired
		return
	}
	o.State, o.Until, o.Source = queue.Queued, until, string(source)
	if shut { // a recovery, or another answer, may open the key before that
		o.Until, o.Scope = key, queue.ScopeGate
	}
}

// handBack gives a call back whose worker stops. One that may have been sent
// and cannot be sent again is for a person.
func (e *ended) handBack(c *queue.Call, o *queue.Outcome) {
	begun := e.rep.Attempts > c.Ladder.Attempts
	if begun && e.executed != classify.No && !c.Repeatable {
		o.State = queue.Unknown
		return
	}
	o.State = queue.Queued
	if !begun {
		o.Reason = queue.ReasonHandedBack
	}
}

// note is what an operator reads of a call that broke.
func (e *ended) note(now time.Time, c *queue.Call, o *queue.Outcome) *queue.Note {
	f := c.Facts
	f.Trail = nil
	with := *o
	with.Note = nil
	f.Apply(now, &with, queue.Keep{})
	n := queue.Explain(&f, o)
	if e.status != 0 {
		n.Status = e.status
	}
	switch {
	case e.why != "":
		n.Why = e.why
	case o.Reason == o.Class: // a word that both have says it all
		n.Why = o.Reason
	}
	if o.Reason == queue.ReasonExpired {
		n.Why = fmt.Sprintf("it may not be sent before %s and expires at %s", instant(e.retryAt), instant(c.Expires))
	}
	if do := remedies[e.reason]; do != "" && o.State == queue.Dead && o.Reason != queue.ReasonExpired {
		n.Do = strings.Replace(do, " ID ", " "+c.ID+" ", 1)
	}
	if (c.Endpoint == callbackEndpoint || c.Endpoint == watchEndpoint) && e.reason == heed.NotAllowed {
		n.Do = "list its host under queue.callbacks.hosts in heed.yaml, then replay; or purge it"
	}
	return &n
}

// remedies say what to do about a dead call, where the reason alone tells.
var remedies = map[heed.Reason]string{
	heed.PermanentFailure:  "look at the status and the kept answer (heed calls show ID --reveal WHY); correct the request (heed calls edit), then replay",
	heed.AttemptsExhausted: "look at the provider's status page; replay when it is well, or raise retry.attempts of the endpoint",
	heed.NotAllowed:        "add method and path to the allow list of the endpoint in heed.yaml, then replay; or purge it",
	heed.RetryOff:          "the caller wanted one attempt: replay if another one is welcome, or purge it",
}
