package queue

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"time"
)

// AgeStep is what one step of priority is worth in age: a call of priority 0
// that has been due for 9 AgeSteps goes before a fresh one of priority 9.
const AgeStep = 30 * time.Second

// Rank orders the due calls of one lane in a gate: the lowest goes first.
func Rank(due time.Time, priority int) int64 {
	return due.UnixNano() - int64(priority)*int64(AgeStep)
}

// crockford is base 32 without letters that are mistaken for digits; ids sort
// as the instants they were made at.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewID makes an id of 48 bits of time and 80 random bits: new ids sort after
// old ones, which keeps the end of an index warm, and cannot be guessed.
func NewID(now time.Time) string {
	var b [16]byte
	ms := uint64(now.UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	rand.Read(b[6:])
	return crockford.EncodeToString(b[:])
}

// Check tells what about a call to be enqueued is wrong.
func (c *Call) Check() error {
	switch {
	case c.Endpoint == "":
		return fmt.Errorf("call without an endpoint: %w", ErrInvalid)
	case c.Method == "":
		return fmt.Errorf("call to %s without a method: %w", c.Endpoint, ErrInvalid)
	case c.Priority < 0 || c.Priority > 9:
		return fmt.Errorf("call to %s with priority %d: use 0 to 9: %w", c.Endpoint, c.Priority, ErrInvalid)
	case len(c.Endpoint) > maxWord || len(c.Gate) > maxWord || len(c.Tenant) > maxWord || len(c.CorrelationID) > maxWord:
		return fmt.Errorf("call to an endpoint, key, tenant or correlation id of more than %d bytes: shorten it: %w",
			maxWord, ErrInvalid)
	}
	return nil
}

// maxWord bounds the words of Facts, which are indexed and listed.
const maxWord = 512

// Rescue says what becomes of a call whose lease was lost: it may have been
// sent, which counts as an attempt. What cannot be repeated without harm is for
// a person to decide.
func Rescue(f *Facts) Outcome {
	at := f.Begun
	if at.IsZero() {
		at = f.NextAt // it was not sent before
	}
	o := Outcome{State: Unknown, Reason: ReasonLeaseLost, Attempts: []Attempt{{At: at, Reason: ReasonLeaseLost}}}
	if f.Repeatable {
		o.State = Queued
	}
	return o
}

// Unbegun says what becomes of a call whose lease was lost before its worker
// said that it begins. A write was certainly not sent; what may be repeated may
// have been, as nobody says that of it.
func Unbegun(f *Facts) Outcome {
	if f.Repeatable {
		return Outcome{State: Queued, Reason: ReasonLeaseLost}
	}
	return Outcome{State: Queued, Reason: ReasonHandedBack}
}

// Explain writes the note for a call that ended as o says. f is the call after
// the outcome was applied.
func Explain(f *Facts, o *Outcome) Note {
	n := Note{
		What:  fmt.Sprintf("%s %s%s ended as %s", f.Method, f.Endpoint, f.Template, o.State),
		Why:   o.Reason,
		First: f.Ladder.First, Last: f.Ladder.Last, Attempts: f.Ladder.Attempts, Status: f.Status,
		Replay: "heed calls replay " + f.ID,
	}
	if n.First.IsZero() {
		n.First, n.Last = f.Created, f.Created
	}
	if o.Class != "" {
		n.Why = fmt.Sprintf("%s (%s)", o.Reason, o.Class)
	}
	if o.Reason == ReasonLeaseLost {
		n.Why = "heed ended, or lost the call, while it was being sent"
		if f.Ladder.Attempts > 0 {
			word := "; that began at "
			if f.Begun.IsZero() {
				word = "; it was due at "
			}
			n.Why += word + f.Ladder.Last.UTC().Format(time.RFC3339)
		}
	}
	switch {
	case o.State == Quarantined:
		n.Do = "look at the kept answer; correct the request or the rule that refused the answer, then replay"
	case o.State == Unknown:
		n.Do = "ask the provider whether it was carried out (heed calls show " + f.ID + " --reveal WHY has what it answered, if it did); replay only if it was not"
	case o.Reason == ReasonExpired:
		n.Do = "decide whether it is still wanted; replay with a new expiry, or purge it"
		n.Replay += " --expires 1h"
	case o.Reason == ReasonUnreadable:
		n.Do = "put the key with which it was sealed back into the ring, then replay"
	default:
		n.Do = "mend what the reason names (heed calls show " + f.ID + "), then replay"
	}
	return n
}

// Apply moves the facts on by an outcome; stores call it inside the step that
// stores them. keep is how long each end is kept.
func (f *Facts) Apply(now time.Time, o *Outcome, keep Keep) {
	for _, a := range o.Attempts {
		f.Ladder.Attempts++
		a.N = 1
		if n := len(f.Trail); n > 0 {
			a.N = f.Trail[n-1].N + 1 // a replay goes on counting
		}
		f.Trail = append(f.Trail, a)
		f.Ladder.Last, f.Status = a.At, a.Status
		if f.Ladder.First.IsZero() {
			f.Ladder.First = a.At
		}
		if a.Class != "" {
			f.Class = a.Class
		}
	}
	if over := len(f.Trail) - MaxTrail; over > 0 {
		f.Trail = f.Trail[over:]
	}
	if o.Class != "" {
		f.Class = o.Class
	}
	f.State, f.Reason, f.Ladder.Waited, f.Ladder.Waits = o.State, o.Reason, f.Ladder.Waited+o.Waited, f.Ladder.Waits+o.Waits
	if o.State == Queued {
		f.wait(now, o)
		return
	}
	f.Ended, f.KeptUntil = now, now.Add(keep.of(o.State))
	if o.KeptUntil.After(f.KeptUntil) {
		f.KeptUntil = o.KeptUntil
	}
	if o.State.Broken() {
		f.Note = o.Note
		if f.Note == nil {
			n := Explain(f, o)
			f.Note = &n
		}
	}
}

func (f *Facts) wait(now time.Time, o *Outcome) {
	if !o.Until.After(now) {
		return
	}
	f.Ladder.Waits++
	f.Ladder.Delay, f.Ladder.WaitSource = o.Delay, o.Source
	if o.Scope == ScopeCall {
		f.NextAt = o.Until
	}
}

// Keep is how long ended calls are kept. Zero fields have the defaults. A call
// with an idempotency key may be kept for longer, see Outcome.KeptUntil.
type Keep struct {
	Answers time.Duration // Done and Cancelled. Default an hour
	Broken  time.Duration // Dead, Quarantined, Unknown. Default seven days
}

func (k Keep) of(s State) time.Duration {
	if s.Broken() {
		if k.Broken > 0 {
			return k.Broken
		}
		return 7 * 24 * time.Hour
	}
	if k.Answers > 0 {
		return k.Answers
	}
	return time.Hour
}

// Restart begins a call anew: its ladder starts over, what was tried stays in
// the trail.
func (f *Facts) Restart(now time.Time, again Replay) {
	f.State, f.Reason, f.Note = Queued, "", nil
	f.Ladder, f.Ended, f.KeptUntil = Ladder{}, time.Time{}, time.Time{}
	f.Expires, f.NextAt = again.Expires, now
	if again.At.After(now) {
		f.NextAt = again.At
	}
}
