package check

import (
	"net/http"
	"time"

	"github.com/heedproject/heed/sim"
)

// Case is one thing that a client is tried at: a world, what to do in it, and
// how to judge what was seen on the wire.
type Case struct {
	// ID is group/name, such as retry-after/seconds.
	ID    string
	Title string // what happens, in a few words
	// Rule is what a client breaks that fails here, and who says so.
	Rule Rule
	// Weight is what the case counts for in the grade. Default 1.
	Weight int
	// Needs are the claims without which the case does not apply.
	Needs []Claim
	// Quick cases are those of --quick.
	Quick bool
	// Provider is whom the world plays, where it plays one; empty: nobody.
	Provider string
	// World is where the client is let loose. It is called once per run.
	World func(Place) sim.World
	// Front is what stands before the world, such as a proxy that breaks off. It
	// is asked once per run. Optional.
	Front func(http.Handler) http.Handler
	// Ask is what the client is asked to do.
	Ask []Operation
	// Limit is how long the client may take for all of it. Default 12 s.
	Limit time.Duration
	// Linger is how long the session is kept after the last outcome, for
	// requests that should no longer come.
	Linger time.Duration
	// Patient cases are judged too when the client was still at it at the limit,
	// or has broken.
	Patient bool
	// Renews: it makes a gateway renew a token that all cases share. Such cases,
	// and those that need Tokens, go one by one behind a gateway.
	Renews bool
	// With is the id of a case whose evidence this one judges, too: it has no
	// world of its own then.
	With string
	// Judge looks at the evidence. It is called after the client has ended.
	Judge func(*Evidence) Verdict
}

// Group is the part of the ID before the slash.
func (c Case) Group() string { return before(c.ID, "/") }

// Rule is what a client ought to do and where it is written: in a standard, or
// as what heed promises of itself.
type Rule struct {
	Text   string `json:"text"`
	Source string `json:"source"`
}

// String is the rule with its source.
func (r Rule) String() string { return r.Text + " (" + r.Source + ")" }

// Place is what a world may know of where it is served.
type Place struct {
	Seed uint64
	// Case is the id of the case within the simulator.
	Case string
	// Base is the URL under which the client reaches it.
	Base string
	// Claims are those of the client.
	Claims []Claim
	// Elsewhere is another host, whose journal is evidence too.
	Elsewhere string

	issuer *issuer
}

// Kind is what an operation is, beside one request.
type Kind string

// The kinds of operations. A client that can only make calls is never asked
// for the others.
const (
	Call    Kind = "call"    // one logical request
	Poll    Kind = "poll"    // GET until the field state is neither pending nor running
	Receive Kind = "receive" // listen for webhooks; POST a receipt for each one that counts
)

// Operation is one thing a client is asked to do.
type Operation struct {
	// ID tells operations of a case apart; it is the last part of Path, too.
	ID   string
	Kind Kind // default Call
	// Wave says when: those of one wave are asked for together, and the next
	// wave when all have ended.
	Wave int
	// Pause is a rest before the wave of this operation.
	Pause  time.Duration
	Method string // default GET
	Path   string
	Header map[string]string
	Body   string
	// Secret puts the credential into the query, in place of the header.
	Secret bool
	// Keyed writes carry an idempotency key.
	Keyed bool
	// Worker says which session does it: each has its own, with its own
	// credential, as the members of a fleet have.
	Worker int
	// Tenant shares the credential with others.
	Tenant string
	// Deadline is when the client is told to give up. 0: it is not told.
	Deadline time.Duration
}

// Mark is the outcome of a case.
type Mark string

// The marks.
const (
	Pass    Mark = "pass"
	Fail    Mark = "fail"
	NA      Mark = "n/a"     // the client does not claim to do this
	Unknown Mark = "unknown" // what was seen does not tell
)

// Verdict is a mark and the sentence that says why, with the numbers.
type Verdict struct {
	Mark  Mark
	Cause string
}
