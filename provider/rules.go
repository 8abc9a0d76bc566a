package provider

import (
	"strings"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider/sheet"
)

// Rule is a rule of a dialect, what else is known of such answers, and where
// it is known from.
type Rule struct {
	classify.Rule
	Note   Note
	Effect Effect
	// Verify is the id of a recipe that finds out whether the work was done.
	Verify string
	// Counts are the ids of ban counters that such an answer counts for.
	Counts []string
	Fact
}

// Note says what kind of success or failure a class stands for.
type Note string

// The notes.
const (
	Empty     Note = "empty"     // there is nothing, which is no failure
	Partial   Note = "partial"   // a success with holes
	Duplicate Note = "duplicate" // an earlier attempt has done it
	Pending   Note = "pending"   // accepted, and not done yet
	Quota     Note = "quota"     // a quota that comes back at a fixed time
	InFlight  Note = "in_flight" // another attempt with the same key is under way
	Outdated  Note = "outdated"  // the caller's copy is old: read again, apply again
	Lockout   Note = "lockout"   // going on would lock the account
)

// Effect is what a caller should change.
type Effect string

// The effects.
const (
	LowerRate        Effect = "lower_rate"
	LowerConcurrency Effect = "lower_concurrency"
	ShrinkRequest    Effect = "shrink_request"
	RenewLock        Effect = "renew_lock"
)

// Fields is the table of one entry of rules.
func (r *Rule) Fields() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "id", Doc: "A name for people; logs tell it as what decided.", Value: sheet.Text(&r.ID), Required: true},
		{Name: "when", Doc: "What must hold, all of it. Nothing: every answer.", Value: whenFields(&r.When)},
		{Name: "then", Doc: "What it meant.", Value: thenFields(&r.Then), Required: true},
		{Name: "wait", Doc: "Where the answer says how long to wait, a floor for the next attempt: one source, or a list of which the first that says something counts.",
			Value: waitValue{&r.Wait}},
		{Name: "combine", Doc: "Which of several sources counts: first, or max for the longest. Default first.",
			Value: sheet.If(r.Wait.Longest, sheet.Switch(&r.Wait.Longest, "first", "max"))},
	}, r.Fact.fields()...), Check: func(m sheet.Read) {
		if r.Then.Rule = r.ID; m.Has("combine") && len(r.Wait.Or) == 0 {
			m.Bad("combine", "list several sources under wait, or leave combine out", "there is nothing to combine")
		}
	}}
}

// told is the table of one entry of rules in a profile: with what is known
// and nobody acts on.
func (r *Rule) told() sheet.Block {
	b := r.Fields()
	b.Fields = append(b.Fields, []sheet.Field{
		{Name: "note", Doc: "What kind of success or failure it is: told, not acted on.",
			Value: sheet.OneOf(&r.Note, Empty, Partial, Duplicate, Pending, Quota, InFlight, Outdated, Lockout)},
		{Name: "effect", Doc: "What a caller should change: told, not acted on.",
			Value: sheet.OneOf(&r.Effect, LowerRate, LowerConcurrency, ShrinkRequest, RenewLock)},
		{Name: "verify", Doc: "The recipe that finds out whether the work was done: told, not acted on.", Value: sheet.Text(&r.Verify)},
		{Name: "counts", Doc: "The ban counters it counts for: told, not acted on.", Value: sheet.Texts(&r.Counts)},
	}...)
	return b
}

// says is the rule in one line: the conditions, an arrow, what it meant.
func (r *Rule) says() string {
	when, then := says(whenFields(&r.When)), says(thenFields(&r.Then))
	rest := says(r.told(), "id", "when", "then")
	text := when + " → " + strings.TrimPrefix(then, "class ")
	if rest != "" {
		text += "; " + rest
	}
	return text
}

func whenFields(w *classify.Match) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "methods", Doc: "Methods of the request.", Value: Methods(&w.Methods)},
		{Name: "paths", Doc: "Globs of the path: * within a segment, ** across segments.", Value: Globs(&w.Paths)},
		{Name: "asked", Doc: "Media types: the request accepts nothing else.", Value: sheet.Texts(&w.Asked)},
		{Name: "status", Doc: "Status codes: 429, 5xx or 500-504.", Value: sheet.List(&w.Statuses, statusRange)},
		{Name: "failures", Doc: "How an attempt failed without an answer.", Value: sheet.List(&w.Failures, failure)},
		{Name: "media", Doc: "Media types of the answer, such as application/json or */*+xml.", Value: sheet.Texts(&w.Media)},
		{Name: "not_media", Doc: "Holds when the media type is none of these.", Value: sheet.Texts(&w.NotMedia)},
		{Name: "header", Doc: "Per header: present, absent, or a regular expression for its value.", Value: headerMatch{&w.Header}},
		{Name: "json", Doc: "Conditions on the JSON body.", Value: sheet.List(&w.JSON, jsonMatch)},
		{Name: "xml", Doc: "A condition on the XML body.", Value: xmlMatch{&w.XML}},
		{Name: "text", Doc: "A regular expression that is searched in the first bytes of the body.", Value: pattern(&w.Text)},
		{Name: "body", Doc: "The body as a whole.",
			Value: sheet.OneOf(&w.Body, classify.BodyEmpty, classify.BodyMalformed, classify.BodyHTML)},
	}}
}

func thenFields(v *classify.Verdict) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "class", Doc: "What the answer meant.", Required: true, Value: classes(&v.Class)},
		{Name: "executed", Doc: "Whether the server did what was asked. Default by class.", Value: executed(&v.Executed)},
		{Name: "retry", Doc: "Whether and how the request may be repeated. Default by class.", Value: retries(&v.Retry)},
		{Name: "scope", Doc: "Whom it concerns: this call, all callers of the key, all who use the host. Default by class.", Value: scopes(&v.Scope)},
		{Name: "wait", Doc: "A constant floor for the next attempt.", Value: sheet.If(v.Wait != 0, sheet.Duration(&v.Wait))},
	}, Check: func(m sheet.Read) { fill(v, m.Has) }}
}

func classes(c *classify.Class) sheet.Value {
	return sheet.OneOf(c, classify.OK, classify.Throttled, classify.Overloaded, classify.Transient, classify.Unauthorized,
		classify.Permanent, classify.Invalid, classify.Stale, classify.Truncated, classify.Unknown)
}

func executed(e *classify.Executed) sheet.Value {
	return sheet.OneOf(e, classify.No, classify.Maybe, classify.Yes)
}

func retries(r *classify.Retry) sheet.Value {
	return sheet.OneOf(r, classify.Never, classify.Idempotent, classify.Any, classify.Once, classify.SameKey,
		classify.Refresh, classify.Revalidate)
}

func scopes(s *classify.Scope) sheet.Value {
	return sheet.OneOf(s, classify.ScopeCall, classify.ScopeKey, classify.ScopeHost)
}

// fill says what a class implies where a rule is silent.
func fill(v *classify.Verdict, has func(string) bool) {
	usual := implied(v.Class)
	if !has("executed") {
		v.Executed = usual.Executed
	}
	if !has("retry") {
		v.Retry = usual.Retry
	}
	if !has("scope") {
		v.Scope = usual.Scope
	}
}

// implied is the plain reading of a class. A throttle answers before work is
// done; what healed by itself may have been done.
func implied(c classify.Class) classify.Verdict {
	switch c {
	case classify.OK:
		return classify.Verdict{Executed: classify.Yes}
	case classify.Throttled:
		return classify.Verdict{Executed: classify.No, Retry: classify.Any, Scope: classify.ScopeKey}
	case classify.Overloaded:
		return classify.Verdict{Retry: classify.Idempotent, Scope: classify.ScopeHost}
	case classify.Transient, classify.Invalid, classify.Truncated:
		return classify.Verdict{Retry: classify.Idempotent}
	case classify.Unauthorized:
		return classify.Verdict{Executed: classify.No, Retry: classify.Refresh, Scope: classify.ScopeKey}
	case classify.Stale:
		return classify.Verdict{Executed: classify.Yes, Retry: classify.Revalidate}
	}
	return classify.Verdict{}
}

// failure takes what the transport can report of an answer that did not come;
// what we refuse or cancel ourselves is no dialect of a provider.
func failure(f *classify.Failure) sheet.Value {
	return sheet.OneOf(f, classify.DNSNotFound, classify.DNSTemporary, classify.Refused, classify.ConnectTimeout,
		classify.TLSFailed, classify.Unwritten, classify.ResetBeforeHeader, classify.HeaderTimeout,
		classify.ProtocolError, classify.BodyCut, classify.BodyTimeout)
}
