package provider

import (
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
	"github.com/heedproject/heed/provider/sheet"
)

// Terms is what heed.yaml and a profile say about an endpoint in the same
// words. Reading overlays: a second document replaces what it names, and its
// rules and hints go before those that are there.
type Terms struct {
	Policy policy.Policy
	Rules  []Rule
	Hints  []Hint
	// Query sets request parameters.
	Query map[string]string
	// HealthyP99 is the measured latency of healthy answers.
	HealthyP99 time.Duration
	// LimitGrade says how well Policy.Limits are known.
	LimitGrade Grade
	// Overrides are headers of a profile that say whether to repeat.
	Overrides []Override
}

// Dialect returns the rules and hints as the rooms take them, the overrides
// behind the rules. The standard hints stand behind the own ones; without own
// ones they are nil, which means the same.
func (t *Terms) Dialect() (rules []classify.Rule, hints []hint.Source) {
	rules = t.ownRules()
	for _, o := range t.Overrides {
		rules = append(rules, o.Rule)
	}
	for _, h := range t.Hints {
		hints = append(hints, h.Source)
	}
	if hints != nil {
		hints = append(hints, hint.Standard()...)
	}
	return rules, hints
}

func (t *Terms) ownRules() []classify.Rule {
	var rules []classify.Rule
	for _, r := range t.Rules {
		rules = append(rules, r.Rule)
	}
	return rules
}

// Fields is the table of all that Terms say.
func (t *Terms) Fields() []sheet.Field {
	p := &t.Policy
	return []sheet.Field{
		{Name: "allow", Doc: "What the endpoint may be used for. Nothing: everything.", Value: sheet.List(&p.Allow, allowFields)},
		{Name: "retry", Doc: "What bounds the life of one call.", Value: retryFields(&p.Retry)},
		{Name: "backoff", Doc: "How long to wait between attempts when the server says nothing.", Value: backoffFields(&p.Backoff)},
		{Name: "hints", Doc: "What the server's headers say about time, and what is added to it.", Value: t.hintFields((*Hint).Fields)},
		{Name: "rules", Doc: "What answers mean that the neutral table does not know. The first match wins.",
			Value: sheet.Append(&t.Rules, func(r *Rule) sheet.Value { return r.Fields() })},
		{Name: "limits", Doc: "How much the quota key may bear.", Value: t.limitFields()},
		{Name: "timeouts", Doc: "What bounds the parts of one attempt.", Value: t.timeoutFields()},
		{Name: "breaker", Doc: "When calls to a dependency that is down are stopped.", Value: breakerFields(&p.Breaker)},
		{Name: "verify", Doc: "What makes an answer acceptable; a bare word is the mode.", Value: verifyFields(&p.Verify)},
		{Name: "idempotency", Doc: "The idempotency keys the provider honours.", Value: keyFields(&p.Key)},
		{Name: "query", Doc: "Parameters set on every request, whatever the caller sent.",
			Value: sheet.Map[string]{P: &t.Query, One: sheet.Text}},
	}
}

func allowFields(a *policy.Allow) sheet.Value {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "methods", Doc: "Methods, of which GET includes HEAD. Nothing: all.", Value: Methods(&a.Methods)},
		{Name: "path", Doc: "A glob of the path below url: * within a segment, ** across segments. Nothing: all.", Value: Glob(&a.Path)},
	}}
}

func retryFields(r *policy.Retry) sheet.Block {
	t := &r.Tokens
	return sheet.Block{Fields: []sheet.Field{
		{Name: "off", Doc: "Send every call once.", Value: sheet.Bool(&r.Off)},
		{Name: "budget", Doc: "The wall-clock time a call may take, waits included. 0s: only the caller ends it. Default 60s.",
			Value: sheet.DurationZero(&r.Budget, sheet.Zero(policy.Unlimited))},
		{Name: "attempts", Doc: "A cap on the number of attempts. 0: none. Default 0.", Value: sheet.Int(&r.Attempts, 0)},
		{Name: "min_attempt", Doc: "The least time that must be left for an attempt to start. Default 50ms.",
			Value: sheet.DurationZero(&r.MinAttempt, sheet.Refused)},
		{Name: "min_pause", Doc: "The shortest pause between two attempts. Default 10ms.",
			Value: sheet.DurationZero(&r.MinPause, sheet.Refused)},
		{Name: "ceiling", Doc: "The longest hint of the server that is waited for. Default 5m.",
			Value: sheet.DurationZero(&r.Ceiling, sheet.Refused)},
		{Name: "over_ceiling", Doc: "What a longer hint does: fail, defer to a queue, or clamp and so retry early. Default fail.",
			Value: sheet.OneOf(&r.OverCeiling, policy.Fail, policy.Defer, policy.Clamp)},
		{Name: "announce", Doc: "Tell a heed further out that retrying is done here. Default false.", Value: sheet.Bool(&r.Announce)},
		{Name: "tokens", Doc: "The retry budget that all callers of the key share.", Value: sheet.Block{Fields: []sheet.Field{
			{Name: "off", Doc: "Let every retry through.", Value: sheet.Bool(&t.Off)},
			{Name: "capacity", Doc: "The size of the bucket. Default 500.", Value: sheet.Int(&t.Capacity, 1)},
			{Name: "throttled", Doc: "The cost of a retry after a throttle. Default 5.", Value: sheet.Int(&t.Throttled, 1)},
			{Name: "transient", Doc: "The cost of a retry after any other failure. Default 14.", Value: sheet.Int(&t.Transient, 1)},
		}}},
	}}
}

func backoffFields(b *policy.Backoff) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "formula", Doc: "How the wait grows and is spread. Default full.", Value: sheet.OneOf(&b.Formula,
			policy.Full, policy.Exponential, policy.Equal, policy.Decorrelated, policy.Additive)},
		{Name: "base", Doc: "The first step. Default 1s.", Value: sheet.DurationZero(&b.Base, sheet.Refused)},
		{Name: "cap", Doc: "The longest wait, jitter included. Default 30s.", Value: sheet.DurationZero(&b.Cap, sheet.Refused)},
	}}
}

func (t *Terms) limitFields() sheet.Block {
	l := &t.Policy.Limits
	return sheet.Block{Fields: []sheet.Field{
		{Name: "rate", Doc: "The published limit, such as 25/s or 1000/min.", Value: sheet.Rate(&l.Rate)},
		{Name: "burst", Doc: "How many requests may leave at once. Default 1.", Value: sheet.Int(&l.Burst, 1)},
		{Name: "source", Doc: "Where the limit was published.", Value: sheet.Text(&l.Source)},
		{Name: "grade", Doc: "How well the limit is known.", Value: grades(&t.LimitGrade)},
		{Name: "concurrency", Doc: "The most requests in flight, until their bodies are closed. 0: no cap. Default 0.",
			Value: sheet.Int(&l.Concurrency, 0)},
		{Name: "groups", Doc: "Path groups with a cap of their own.", Value: sheet.List(&l.Groups, groupFields)},
		{Name: "reserve", Doc: "The remaining quota at which requests wait for the reset. 0: never. Default 5.",
			Value: sheet.Never(&l.Reserve, sheet.Int(&l.Reserve, 0))},
		{Name: "stagger", Doc: "The first attempts after start-up are spread over this long. Default 0s.", Value: sheet.Duration(&l.Stagger)},
		{Name: "learn", Doc: "How a rate is found out where none is published.", Value: sheet.Block{Fields: []sheet.Field{
			{Name: "off", Doc: "Never pace by a learned rate.", Value: sheet.Bool(&l.Learn.Off)},
			{Name: "start", Doc: "The rate at which an unknown key begins.", Value: sheet.Rate(&l.Learn.Start)},
		}}},
		{Name: "tenant_share", Doc: "The largest part of the concurrency that one tenant may hold while another waits. Default 1.",
			Value: sheet.Float(&l.TenantShare, 0.001, 1)},
	}}
}

func groupFields(g *policy.Group) sheet.Value {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "name", Doc: "The name in waits and metrics.", Required: true, Value: sheet.Text(&g.Name)},
		{Name: "paths", Doc: "Globs of the path below url: * within a segment, ** across segments.", Required: true, Value: Globs(&g.Paths)},
		{Name: "concurrency", Doc: "The cap. 0: none.", Value: sheet.Int(&g.Concurrency, 0)},
	}}
}

func (t *Terms) timeoutFields() sheet.Block {
	o := &t.Policy.Timeouts
	return sheet.Block{Fields: []sheet.Field{
		{Name: "connect", Doc: "Dial and TLS handshake. Default 10s.", Value: sheet.DurationZero(&o.Connect, sheet.Refused)},
		{Name: "header", Doc: "From the end of the request to the head of the answer. Default 60s.",
			Value: sheet.DurationZero(&o.Header, sheet.Refused)},
		{Name: "idle", Doc: "The silence between two reads of the body. Default 60s.", Value: sheet.DurationZero(&o.Idle, sheet.Refused)},
		{Name: "attempt", Doc: "The whole attempt, body included. 0s: only the budget bounds it. Default 0s.", Value: sheet.Duration(&o.Attempt)},
		{Name: "healthy_p99", Doc: "The measured latency of healthy answers; config check compares the timeouts with it.",
			Value: sheet.Duration(&t.HealthyP99)},
	}}
}

func breakerFields(b *policy.Breaker) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "off", Doc: "Never open.", Value: sheet.Bool(&b.Off)},
		{Name: "consecutive", Doc: "Failures in a row that open it. 0: this rule is off. Default 10.",
			Value: sheet.Never(&b.Consecutive, sheet.Int(&b.Consecutive, 0))},
		{Name: "ratio", Doc: "The part of failures within window that opens it too. 0: this rule is off. Default 0.",
			Value: sheet.Float(&b.Ratio, 0, 1)},
		{Name: "window", Doc: "Over which ratio is taken. Default 30s.", Value: sheet.DurationZero(&b.Window, sheet.Refused)},
		{Name: "min_calls", Doc: "The fewest answers within window for ratio to count. Default 20.", Value: sheet.Int(&b.MinCalls, 1)},
		{Name: "open", Doc: "The first open time. Default 1s.", Value: sheet.DurationZero(&b.Open, sheet.Refused)},
		{Name: "open_max", Doc: "The longest open time. Default 30s.", Value: sheet.DurationZero(&b.OpenMax, sheet.Refused)},
		{Name: "growth", Doc: "By which the open time grows after a failed probe. Default 2.", Value: sheet.Float(&b.Growth, 1, 100)},
		{Name: "jitter", Doc: "The part of the open time that is added at random. 0: none. Default 0.1.",
			Value: sheet.Never(&b.Jitter, sheet.Float(&b.Jitter, 0, 1))},
		{Name: "lease", Doc: "How long a probe may stay unanswered. Default 30s.", Value: sheet.DurationZero(&b.Lease, sheet.Refused)},
		{Name: "on_open", Doc: "What a call does that finds it open. Default wait.",
			Value: sheet.OneOf(&b.OnOpen, policy.OnOpenWait, policy.OnOpenFail)},
		{Name: "health", Doc: "A request that must pass before the breaker closes.", Value: sheet.Block{Fields: []sheet.Field{
			{Name: "method", Doc: "Default GET.", Value: sheet.OneOf(&b.Health.Method, "GET", "HEAD", "OPTIONS")},
			{Name: "path", Doc: "On the host of the endpoint, with query if it needs one.", Value: sheet.Text(&b.Health.Path)},
		}}},
	}}
}

func verifyFields(v *policy.Verify) sheet.Value {
	mode := sheet.OneOf(&v.Mode, policy.VerifyHead, policy.VerifyFull, policy.VerifyOff)
	return sheet.Short{Value: mode, Long: sheet.Block{Fields: []sheet.Field{
		{Name: "mode", Doc: "head looks at the first 64KiB, full delivers complete answers only, off looks at no body. Default head.", Value: mode},
		{Name: "max_age", Doc: "The oldest answer of a cache that is accepted. 0s: not checked.", Value: sheet.Duration(&v.MaxAge)},
		{Name: "max_unmodified", Doc: "The longest time since Last-Modified. 0s: not checked.", Value: sheet.Duration(&v.MaxUnmodified)},
		{Name: "spool_limit", Doc: "The most that full keeps of one answer. Default 1GiB.", Value: sheet.Size(&v.SpoolLimit, false)},
	}}}
}

func keyFields(k *policy.Key) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "header", Doc: "The provider's own name for it. Nothing: the provider honours no keys.", Value: Header(&k.Header)},
		{Name: "methods", Doc: "Methods that take a key. Default POST and PATCH.", Value: Methods(&k.Methods)},
		{Name: "from", Doc: "given by the caller, random, or a hash of method, path, body and record. Default given.",
			Value: sheet.OneOf(&k.From, policy.KeyGiven, policy.KeyRandom, policy.KeyHash)},
		{Name: "max_len", Doc: "The longest key the provider takes, in bytes. Default 255.", Value: sheet.Int(&k.MaxLen, 1)},
		{Name: "quoted", Doc: "Send it as a structured-field string.", Value: sheet.Bool(&k.Quoted)},
		{Name: "record_header", Doc: "A request header whose value enters a derived key.", Value: Header(&k.RecordHeader)},
		{Name: "any_order", Doc: "Derive the same key whatever the order of JSON members.", Value: sheet.Bool(&k.AnyOrder)},
	}}
}

// Header is the name of a header.
func Header(p *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			err := HeaderName(text)
			if err == nil {
				*p = text
			}
			return err
		},
		Show:    func() (string, bool) { return *p, *p != "" },
		Remedy:  "write the name alone, such as X-Api-Key",
		Pattern: headerName.String(),
		Example: "X-Api-Key",
	}
}
