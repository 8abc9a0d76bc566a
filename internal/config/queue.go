package config

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/sheet"
)

// Queue is where calls are kept that are answered later.
type Queue struct {
	Store QueueStore
	// Path is the file of the SQLite store. Empty: queue.db in the folder of
	// the process's state.
	Path string
	// DSN leads to the database of the Postgres store.
	DSN Secret
	// Keys hold the keys with which calls are sealed at rest, one a line; the
	// first one seals. None: one is made beside the file at the first start.
	Keys []Secret
	// ResultTTL is how long answers are kept, DeadTTL how long calls are that
	// ended without one, Window how long an idempotency key stays taken.
	ResultTTL, DeadTTL, Window time.Duration
	Max                        QueueMax
	Lease                      time.Duration
	Workers                    int
	Callbacks                  Callbacks
}

// QueueStore names a store.
type QueueStore string

// The stores.
const (
	QueueSQLite   QueueStore = "sqlite"
	QueuePostgres QueueStore = "postgres"
)

// QueueMax bounds what is kept.
type QueueMax struct {
	Calls  int   // queued or running
	Body   int64 // of one request
	Answer int64 // of one answer; a larger one is not kept
}

// Callbacks is whom the end of a call may be told.
type Callbacks struct {
	// Hosts are those that Heed-Callback may name, with a port if it is not
	// that of https.
	Hosts []string
	// Secret signs what is sent.
	Secret Secret
	// Networks are ranges that would otherwise be refused and may be dialed.
	Networks []netip.Prefix
}

// Async is what an endpoint does later.
type Async struct {
	// Methods are answered with 202, whatever the caller prefers.
	Methods []string
	OnOpen  AsyncOpen
	// Expiry is how long a call is worth sending. 0: DefaultExpiry.
	Expiry time.Duration
	Key    AsyncKey
	// Waiting says what becomes of a write with a key whose caller waits.
	Waiting AsyncWaiting
	Prefer  AsyncPrefer
}

// DefaultExpiry is how long a queued call is worth sending.
const DefaultExpiry = 24 * time.Hour

// AsyncOpen is what a call does that finds the breaker open.
type AsyncOpen string

// The ways. Without one, breaker.on_open says it.
const (
	AsyncOpenEnqueue AsyncOpen = "enqueue"
	AsyncOpenFail    AsyncOpen = "fail"
)

// AsyncKey says where the idempotency key of a queued write comes from.
type AsyncKey string

// The ways.
const (
	AsyncKeyGiven    AsyncKey = "given"    // as idempotency says; none is needed
	AsyncKeyRequired AsyncKey = "required" // a write without one is refused
	AsyncKeyDerived  AsyncKey = "derived"  // from method, path, body and record id
)

// AsyncWaiting is the way of a write with a key whose caller waits.
type AsyncWaiting string

// The ways.
const (
	AsyncDirect AsyncWaiting = "direct" // not through the queue
	AsyncQueued AsyncWaiting = "queued" // on disk before it is sent
)

// AsyncPrefer says for whom Prefer: respond-async is meant.
type AsyncPrefer string

// The ways.
const (
	AsyncPreferTake AsyncPrefer = "take" // for heed
	AsyncPreferPass AsyncPrefer = "pass" // for the provider
)

// needsQueue tells whether something is asked for that only a queue can do.
func (a *Async) needsQueue() bool {
	return len(a.Methods) > 0 || a.OnOpen == AsyncOpenEnqueue || a.Waiting == AsyncQueued
}

func defaultQueue() *Queue {
	return &Queue{
		Store: QueueSQLite, ResultTTL: time.Hour, DeadTTL: 7 * 24 * time.Hour, Window: 24 * time.Hour,
		Max: QueueMax{Calls: 1_000_000, Body: 16 << 20, Answer: 16 << 20}, Lease: 30 * time.Second, Workers: 64,
	}
}

// maybeQueue is the block queue, which need not be there.
type maybeQueue struct{ p **Queue }

// Read implements sheet.Value.
func (m maybeQueue) Read(r *sheet.Reader, n *sheet.Node, path string) {
	*m.p = defaultQueue()
	queueFields(*m.p).Read(r, n, path)
}

// Write implements sheet.Value.
func (m maybeQueue) Write() *sheet.Node {
	if *m.p == nil {
		return nil
	}
	return queueFields(*m.p).Write()
}

// Schema implements sheet.Value.
func (m maybeQueue) Schema() map[string]any { return queueFields(defaultQueue()).Schema() }

func queueFields(q *Queue) sheet.Block {
	positive := func(d *time.Duration) sheet.Value { return sheet.DurationZero(d, sheet.Refused) }
	return sheet.Block{Fields: []sheet.Field{
		{Name: "store", Doc: "Default sqlite, in the process.", Value: sheet.OneOf(&q.Store, QueueSQLite, QueuePostgres)},
		{Name: "path", Doc: "Store sqlite: the file. Default queue.db in the folder of the process's state.", Value: queuePath(&q.Path)},
		{Name: "dsn", Doc: "Store postgres: where the database is.", Value: secret(&q.DSN)},
		{Name: "keys", Doc: "The keys that seal calls at rest, as heed keys new writes them; the first one seals, the others still open. " +
			"Nothing: one is made beside the file at the first start.", Value: sheet.List(&q.Keys, func(s *Secret) sheet.Value { return secret(s) })},
		{Name: "result_ttl", Doc: "How long answers are kept; that of a call with an idempotency key as long as window, if that is longer. Default 1h.", Value: positive(&q.ResultTTL)},
		{Name: "dead_ttl", Doc: "How long calls are kept that ended without success. Default 168h.", Value: positive(&q.DeadTTL)},
		{Name: "window", Doc: "How long an idempotency key stays taken: at least as long as the provider remembers it. Default 24h.", Value: positive(&q.Window)},
		{Name: "max", Doc: "What is taken in.", Value: sheet.Block{Fields: []sheet.Field{
			{Name: "calls", Doc: "Calls that are queued or running. Default 1000000.", Value: sheet.Int(&q.Max.Calls, 1)},
			{Name: "body", Doc: "The body of a request. Default 16MiB.", Value: sheet.Size(&q.Max.Body, false)},
			{Name: "answer", Doc: "The body of an answer; a larger one is not kept. Default 16MiB.", Value: sheet.Size(&q.Max.Answer, false)},
		}}},
		{Name: "lease", Doc: "How long a process may be silent before its calls go to another one. Default 30s.", Value: positive(&q.Lease)},
		{Name: "workers", Doc: "Queued calls that are sent at once, at most half of them of one endpoint. Default 64.", Value: sheet.Int(&q.Workers, 1)},
		{Name: "callbacks", Doc: "Whom the end of a call may be told.", Value: callbackFields(&q.Callbacks)},
	}, Check: func(m sheet.Read) { checkQueue(q, m) }}
}

func checkQueue(q *Queue, m sheet.Read) {
	switch {
	case q.Store == QueuePostgres && !m.Has("dsn"):
		m.Bad("dsn", "add it, such as env:HEED_DSN", "the postgres store needs to know where its database is")
	case q.Store == QueuePostgres && m.Has("path"):
		m.Bad("path", "leave it out", "path belongs to the sqlite store")
	case q.Store == QueueSQLite && m.Has("dsn"):
		m.Bad("dsn", "leave it out, or write store: postgres", "dsn belongs to the postgres store")
	}
	if q.Store == QueuePostgres && !m.Has("keys") {
		m.Bad("keys", "make one with heed keys new", "gateways that share a database need to share its keys")
	}
	if q.Lease < time.Second {
		m.Bad("lease", "make it at least 1s", "a lease of %s is lost by a slow disk", span(q.Lease))
	}
}

func queuePath(p *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if !filepath.IsAbs(text) {
				return errors.New("this is no absolute path")
			}
			*p = text
			return nil
		},
		Show:    func() (string, bool) { return *p, *p != "" },
		Remedy:  "write where the file lies on every start, such as /var/lib/heed/queue.db",
		Pattern: "^/.+",
		Example: "/var/lib/heed/queue.db",
	}
}

func callbackFields(c *Callbacks) sheet.Block {
	return sheet.Block{
		Fields: []sheet.Field{
			{Name: "hosts", Doc: "The hosts that Heed-Callback may name, over https; http where the host is this machine.", Value: sheet.List(&c.Hosts, hostName)},
			{Name: "secret", Doc: "What signs them (Standard Webhooks): whsec_ and base64, or any text.", Value: secret(&c.Secret)},
			{Name: "networks", Doc: "Address ranges that would otherwise be refused (private, loopback, link-local) and may be dialed.",
				Value: sheet.List(&c.Networks, network)},
		},
		Check: func(m sheet.Read) {
			if m.Has("hosts") && !m.Has("secret") {
				m.Bad("secret", "add it, such as env:HEED_CALLBACK_SECRET", "callbacks are signed and need a secret")
			}
		},
	}
}

func hostName(s *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			u, err := parseURL("https://" + text)
			if err != nil || u.Path != "" || !strings.EqualFold(u.Host, text) {
				return errors.New("this is not a host")
			}
			*s = strings.ToLower(text)
			return nil
		},
		Show:    func() (string, bool) { return *s, *s != "" },
		Remedy:  "write a host with a port if need be, such as hooks.example.org",
		Pattern: `^[^/?#@]+$`,
		Example: "hooks.example.org",
	}
}

func asyncFields(a *Async) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "methods", Doc: "The methods that are answered with 202, whatever the caller prefers.", Value: provider.Methods(&a.Methods)},
		{Name: "on_open", Doc: "What a call does that finds the breaker open, instead of what breaker.on_open says.",
			Value: sheet.If(a.OnOpen != "", sheet.OneOf(&a.OnOpen, AsyncOpenEnqueue, AsyncOpenFail))},
		{Name: "expiry", Doc: "How long a queued call is worth sending; Heed-Budget shortens it. Default 24h.",
			Value: sheet.If(a.Expiry != 0, sheet.DurationZero(&a.Expiry, sheet.Refused))},
		{Name: "key", Doc: "The idempotency key of a queued write: given (as idempotency says), required, or derived from what it is. Default given.",
			Value: sheet.If(a.Key != "", sheet.OneOf(&a.Key, AsyncKeyGiven, AsyncKeyRequired, AsyncKeyDerived))},
		{Name: "waiting", Doc: "A write with a key whose caller waits: direct, or queued, which outlives the caller and answers a repeat with the first answer. Default direct.",
			Value: sheet.If(a.Waiting != "", sheet.OneOf(&a.Waiting, AsyncDirect, AsyncQueued))},
		{Name: "prefer", Doc: "Who answers Prefer: respond-async: take (heed) or pass (the provider). Default take.",
			Value: sheet.If(a.Prefer != "", sheet.OneOf(&a.Prefer, AsyncPreferTake, AsyncPreferPass))},
	}}
}

// checkAsync reports what needs a queue where there is none.
func (p *parser) checkAsync() {
	if p.config.Queue != nil || p.written("queue") {
		return
	}
	for _, w := range p.entries {
		if w.e.Async.needsQueue() {
			p.bad(w.path+".async", "add queue: {} for the SQLite one, or leave async out", "calls that are answered later need a queue")
		}
	}
}

// async warns of what is kept in the queue and cannot be sent later.
func (l *linter) async(e *Endpoint) {
	a := &e.Async
	if e.Auth.Kind == AuthPassthrough && a.needsQueue() {
		l.warn("async", "give the endpoint a credential of its own under auth",
			"the queue keeps no credential of a caller: calls that bring one are refused instead of queued")
	}
	keyed := e.Policy.Key.Header != "" || a.Key == AsyncKeyDerived || a.Key == AsyncKeyRequired
	if !keyed && (a.OnOpen == AsyncOpenEnqueue || writes(a.Methods)) {
		l.warn("async.key", "set idempotency.header where the provider honours keys, or async.key: required so that heed at least sees repeats",
			"queued writes have no idempotency key: one that is cut off while it is sent waits as unknown for a person")
	}
}

func writes(methods []string) bool {
	for _, m := range methods {
		if m == "POST" || m == "PATCH" {
			return true
		}
	}
	return false
}

// queue warns of a queue whose key lies beside it.
func (l *linter) queue(c *Config) {
	if q := c.Queue; q != nil && len(q.Keys) == 0 && c.File != "" {
		l.warn("queue.keys", "make one with heed keys new and name it here",
			"the key that seals calls at rest is made beside the database: who can read one can read the other")
	}
}
