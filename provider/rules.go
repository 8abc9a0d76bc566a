package provider

import (
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/provider/sheet"
)

// Rule is a rule of a dialect and where it is known from.
type Rule struct {
	classify.Rule
	Fact
}

// Fields is the table of one entry of rules.
func (r *Rule) Fields() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "id", Doc: "A name for people; logs tell it as what decided.", Value: sheet.Text(&r.ID), Required: true},
		{Name: "when", Doc: "What must hold, all of it. Nothing: every answer.", Value: whenFields(&r.When)},
		{Name: "then", Doc: "What it meant.", Value: thenFields(&r.Then), Required: true},
		{Name: "wait", Doc: "A wait that is read from the body; a floor for the next attempt.", Value: sheet.If(r.Wait.Format != "", waitFields(&r.Wait))},
	}, r.Fact.fields()...), Check: func(sheet.Read) { r.Then.Rule = r.ID }}
}

func whenFields(w *classify.Match) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "methods", Doc: "Methods of the request.", Value: Methods(&w.Methods)},
		{Name: "paths", Doc: "Globs of the path: * within a segment, ** across segments.", Value: Globs(&w.Paths)},
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

func waitFields(w *classify.BodyWait) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "json", Doc: "The JSON path of the wait.", Value: Path(&w.Path)},
		{Name: "text", Doc: "A regular expression whose first group is the wait.", Value: pattern(&w.Text)},
		{Name: "format", Doc: "How the wait is written.", Required: true, Value: formats(&w.Format)},
		{Name: "floor", Doc: "The least that is waited.", Value: sheet.Duration(&w.Floor)},
	}, Check: func(m sheet.Read) {
		if m.Has("json") == m.Has("text") {
			m.Bad("json", "give either json or text", "it must be clear where in the body the wait stands")
		}
		if w.Text != nil && w.Text.NumSubexp() == 0 {
			m.Bad("text", "put parentheses around the wait", "the expression has no group")
		}
	}}
}

func formats(f *hint.Format) sheet.Value {
	return sheet.OneOf(f, hint.Seconds, hint.Millis, hint.EpochSeconds, hint.EpochMillis, hint.ISO8601, hint.HTTPDate,
		hint.GoDuration, hint.ProtoDuration, hint.RetryAfter, hint.Number, hint.UsedTotal, hint.KeyValue, hint.Structured)
}

// failure takes what the transport can report of an answer that did not come;
// what we refuse or cancel ourselves is no dialect of a provider.
func failure(f *classify.Failure) sheet.Value {
	return sheet.OneOf(f, classify.DNSNotFound, classify.DNSTemporary, classify.Refused, classify.ConnectTimeout,
		classify.TLSFailed, classify.Unwritten, classify.ResetBeforeHeader, classify.HeaderTimeout,
		classify.ProtocolError, classify.BodyCut, classify.BodyTimeout)
}
