package provider

import (
	"errors"
	"time"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider/sheet"
)

// idempotency is what is known of a provider's idempotency keys beyond what a
// policy holds.
type idempotency struct {
	Field    string // of the body, where the key is no header
	Window   time.Duration
	Forgets  time.Duration
	Scope    string
	Replay   string // the header of a stored answer
	Failures string // what becomes of a stored failure
	InFlight string // the rule for a key that is under way
	Mismatch string // the rule for a key that came with another request
	Lost     string // the recipe that finds out, where there is no key
	About    string
	Fact
}

func (i *idempotency) fields() []sheet.Field {
	return append([]sheet.Field{
		{Name: "field", Doc: "Where the key stands in the body, when it is no header.", Value: sheet.Text(&i.Field)},
		{Name: "window", Doc: "How long a key is kept at least.", Value: span(&i.Window)},
		{Name: "forgets", Doc: "After how long it is forgotten at most; then a repeat is executed.", Value: span(&i.Forgets)},
		{Name: "scope", Doc: "Within what keys are told apart, such as account or endpoint.", Value: sheet.Text(&i.Scope)},
		{Name: "replay_header", Doc: "The header that marks a stored answer.", Value: Header(&i.Replay)},
		{Name: "failures", Doc: "What becomes of failures: replayed, executed again, or not kept.",
			Value: sheet.OneOf(&i.Failures, "replayed", "reexecuted", "not_kept")},
		{Name: "in_flight", Doc: "The rule for a key whose request is under way.", Value: sheet.Text(&i.InFlight)},
		{Name: "mismatch", Doc: "The rule for a key that came with another request.", Value: sheet.Text(&i.Mismatch)},
		{Name: "lost", Doc: "The recipe that finds out what became of a write without key.", Value: sheet.Text(&i.Lost)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&i.About)},
	}, i.Fact.fields()...)
}

// auth is one way to be known to a provider.
type auth struct {
	Kind         string
	Place        string
	Name         string
	Prefix       string
	Lifetime     time.Duration
	LifetimeFrom string
	RefreshEarly time.Duration
	Rotates      bool
	SingleUse    string
	SingleFlight string
	Expired      string
	Denied       string
	Lockout      lock
	Resign       bool
	ClockUnit    string
	MaxSkew      time.Duration
	About        string
	Fact
}

// lock is how many failed logins lock an account, and for how long.
type lock struct {
	Failures int
	Window   time.Duration
	For      time.Duration
}

func (a *auth) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "kind", Doc: "How one is known.", Required: true, Value: sheet.OneOf(&a.Kind, "none", "static", "basic", "bearer", "oauth2_client",
			"oauth2_refresh", "session", "cookie_pair", "jwt", "signed")},
		{Name: "place", Doc: "Where the credential stands.", Value: sheet.OneOf(&a.Place, "header", "query", "cookie", "body")},
		{Name: "name", Doc: "The name of the header, parameter or cookie.", Value: sheet.Text(&a.Name)},
		{Name: "prefix", Doc: "What stands before it.", Value: sheet.Text(&a.Prefix)},
		{Name: "lifetime", Doc: "How long it holds. Nothing: it does not expire, or nobody says.", Value: span(&a.Lifetime)},
		{Name: "lifetime_from", Doc: "Where the issuer says how long: expires_in, max_age, a field, jwt_exp, unknown.", Value: sheet.Text(&a.LifetimeFrom)},
		{Name: "refresh_early", Doc: "How long before its end clients renew it.", Value: span(&a.RefreshEarly)},
		{Name: "rotates", Doc: "Whether a refresh token is replaced by each use.", Value: flag(&a.Rotates)},
		{Name: "single_use", Doc: "What a second use of a refresh token does: revoke_all, fail, none.",
			Value: sheet.OneOf(&a.SingleUse, "revoke_all", "fail", "none")},
		{Name: "single_flight", Doc: "Who may renew at once: one per process, or one of all.", Value: sheet.OneOf(&a.SingleFlight, "process", "cluster")},
		{Name: "expired", Doc: "The rule for an expired credential.", Value: sheet.Text(&a.Expired)},
		{Name: "denied", Doc: "The rule for one that lacks a right.", Value: sheet.Text(&a.Denied)},
		{Name: "lockout", Doc: "What failed logins lead to.", Value: sheet.Block{Fields: []sheet.Field{
			{Name: "failures", Doc: "How many.", Value: some(&a.Lockout.Failures)},
			{Name: "window", Doc: "Within how long.", Value: span(&a.Lockout.Window)},
			{Name: "for", Doc: "How long the account is locked.", Value: span(&a.Lockout.For)},
		}}},
		{Name: "resign", Doc: "Whether every attempt must be signed anew.", Value: flag(&a.Resign)},
		{Name: "clock_unit", Doc: "The unit of the instant in the signature.", Value: sheet.OneOf(&a.ClockUnit, "s", "ms")},
		{Name: "max_skew", Doc: "How far the clock may be off.", Value: span(&a.MaxSkew)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&a.About)},
	}, a.Fact.fields()...)}
}

// paging is one way to walk over a long list, and how to know that all came.
type paging struct {
	Kind          string
	Where         string
	Size          size
	Next          string
	End           []string
	Total         string
	Trust         string
	EmptyPageEnds bool
	Frozen        bool
	CursorTTL     time.Duration
	Depth         string
	Complete      string
	Checkpoint    string
	Deletes       string
	About         string
	Fact
}

// size is how long a page is.
type size struct {
	Param        string
	Default, Max int
	ServerLowers bool
}

func (p *paging) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "kind", Doc: "How the next page is found.", Required: true,
			Value: sheet.OneOf(&p.Kind, "none", "link", "next_url", "cursor", "token", "offset", "page", "keyset")},
		{Name: "where", Doc: "For which operations, when not for all.", Value: sheet.Text(&p.Where)},
		{Name: "size", Doc: "How long a page is.", Value: sheet.Block{Fields: []sheet.Field{
			{Name: "param", Doc: "The parameter.", Value: sheet.Text(&p.Size.Param)},
			{Name: "default", Doc: "Without it.", Value: some(&p.Size.Default)},
			{Name: "max", Doc: "At most.", Value: some(&p.Size.Max)},
			{Name: "server_lowers", Doc: "Whether the server may give less than was asked for.", Value: flag(&p.Size.ServerLowers)},
		}}},
		{Name: "next", Doc: "Where the next page is told: a JSON path, or a header.", Value: sheet.Text(&p.Next)},
		{Name: "end", Doc: "What shows the end.", Value: sheet.List(&p.End, func(s *string) sheet.Value {
			return sheet.OneOf(s, "absent", "null", "empty", "false", "short_page", "empty_page", "flag", "status", "code")
		})},
		{Name: "total", Doc: "Where a total is told.", Value: sheet.Text(&p.Total)},
		{Name: "trust", Doc: "What the total is worth.", Value: sheet.OneOf(&p.Trust, "exact", "estimate", "capped", "page_count", "unknown")},
		{Name: "empty_page_ends", Doc: "Whether an empty page is the end.", Value: flag(&p.EmptyPageEnds)},
		{Name: "frozen", Doc: "Whether the other parameters may not change after the first page.", Value: flag(&p.Frozen)},
		{Name: "cursor_ttl", Doc: "How long a cursor holds.", Value: span(&p.CursorTTL)},
		{Name: "depth", Doc: "How deep one can walk.", Value: sheet.Text(&p.Depth)},
		{Name: "complete", Doc: "What proves that all came.", Value: sheet.Text(&p.Complete)},
		{Name: "checkpoint", Doc: "What to keep to go on later.", Value: sheet.Text(&p.Checkpoint)},
		{Name: "deletes", Doc: "How deleted records are told.", Value: sheet.Text(&p.Deletes)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&p.About)},
	}, p.Fact.fields()...)}
}

// batch is an answer that holds answers.
type batch struct {
	Path       string
	Outer      []classify.StatusRange
	Items      string
	Status     string
	Header     string
	Body       string
	Dependents int
	About      string
	Fact
}

func (b *batch) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "path", Doc: "The operation.", Value: sheet.Text(&b.Path)},
		{Name: "outer", Doc: "The status of the whole.", Value: sheet.List(&b.Outer, statusRange)},
		{Name: "items", Doc: "Where the answers stand: a JSON path.", Value: sheet.Text(&b.Items)},
		{Name: "status", Doc: "Where the status of each stands.", Value: sheet.Text(&b.Status)},
		{Name: "header", Doc: "Where the headers of each stand.", Value: sheet.Text(&b.Header)},
		{Name: "body", Doc: "Where the body of each stands.", Value: sheet.Text(&b.Body)},
		{Name: "dependents", Doc: "The status of those that waited for one that failed.", Value: some(&b.Dependents)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&b.About)},
	}, b.Fact.fields()...)}
}

// stream is an answer that comes in pieces, and can fail after its 200.
type stream struct {
	Format string
	Error  string
	End    string
	About  string
	Fact
}

func (s *stream) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "format", Doc: "How it is written.", Required: true, Value: sheet.OneOf(&s.Format, "sse", "ndjson", "chunks")},
		{Name: "error", Doc: "What a failure looks like.", Value: sheet.Text(&s.Error)},
		{Name: "end", Doc: "What marks the end.", Value: sheet.Text(&s.End)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&s.About)},
	}, s.Fact.fields()...)}
}

// ban is a count of bad answers that ends in a ban.
type ban struct {
	ID       string
	Statuses []classify.StatusRange
	Exclude  string
	Limit    int
	Window   time.Duration
	Key      []string
	Action   string
	Fact
}

func (b *ban) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "id", Doc: "A name for it.", Required: true, Value: ident(&b.ID)},
		{Name: "status", Doc: "What counts.", Value: sheet.List(&b.Statuses, statusRange)},
		{Name: "exclude", Doc: "What does not.", Value: sheet.Text(&b.Exclude)},
		{Name: "limit", Doc: "How many are too many.", Value: some(&b.Limit)},
		{Name: "window", Doc: "Within how long.", Value: span(&b.Window)},
		{Name: "key", Doc: "Who is banned, in words such as ip, app.", Value: sheet.List(&b.Key, ident)},
		{Name: "action", Doc: "What happens then.", Value: sheet.Text(&b.Action)},
	}, b.Fact.fields()...)}
}

// recipe is a look-up that finds out whether a write was done.
type recipe struct {
	ID      string
	Request string
	Look    string
	About   string
	Fact
}

func (c *recipe) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "id", Doc: "A name for it.", Required: true, Value: ident(&c.ID)},
		{Name: "request", Doc: "What to ask, such as GET /patrons/{id}/holds.", Required: true, Value: sheet.Text(&c.Request)},
		{Name: "look", Doc: "What shows that the write was done.", Required: true, Value: sheet.Text(&c.Look)},
		{Name: "about", Doc: "What else is known.", Value: sheet.Text(&c.About)},
	}, c.Fact.fields()...)}
}

// fixup is something that every request must have: parameters are set,
// headers are told.
type fixup struct {
	Query  map[string]string
	Header string
	Value  string
	About  string
	Fact
}

func (x *fixup) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "query", Doc: "Parameters that are set on every request, whatever the caller sent.", Value: sheet.Map[string]{P: &x.Query, One: sheet.Text}},
		{Name: "header", Doc: "A header that the provider asks for: told, not set.", Value: Header(&x.Header)},
		{Name: "value", Doc: "What the header should say.", Value: sheet.Text(&x.Value)},
		{Name: "about", Doc: "Why.", Value: sheet.Text(&x.About)},
	}, x.Fact.fields()...), Check: func(m sheet.Read) {
		if m.Has("query") == m.Has("header") {
			m.Bad("query", "give either query or header", "it must be clear what the request needs")
		}
	}}
}

// Override is a header by which the server says whether to repeat.
type Override struct {
	classify.Rule
	Fact
}

func (o *Override) table() sheet.Block {
	v, w := &o.Override, &o.When
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "header", Doc: "The header.", Required: true, Value: Header(&v.Header)},
		{Name: "true", Doc: "What it must match to mean yes. Default true.", Value: pattern(&v.Yes)},
		{Name: "false", Doc: "What it must match to mean no. Default false.", Value: pattern(&v.No)},
		{Name: "status", Doc: "With which status. Nothing: all.", Value: sheet.List(&w.Statuses, statusRange)},
	}, o.Fact.fields()...), Check: func(sheet.Read) { o.ID = v.Header }}
}

// note is a fact that fits nowhere else.
type note struct {
	Text string
	Fact
}

func (n *note) table() sheet.Block {
	return sheet.Block{Fields: append([]sheet.Field{
		{Name: "fact", Doc: "What is so.", Required: true, Value: sheet.Text(&n.Text)},
	}, n.Fact.fields()...)}
}

// hosts are where the API is found.
func host(p *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if !hostPattern.MatchString(text) {
				return errors.New("this is not the name of a host")
			}
			*p = text
			return nil
		},
		Show:    func() (string, bool) { return *p, *p != "" },
		Remedy:  "write it as in api.example.com or *.example.com",
		Pattern: hostPattern.String(),
		Example: "api.example.com",
	}
}
