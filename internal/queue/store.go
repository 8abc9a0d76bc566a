package queue

import (
	"context"
	"io"
	"time"
	"unicode/utf8"
)

// Every method of a store is one atomic step that is on disk when it returns,
// and is told the time. A store is used by many goroutines at once.

// Intake takes calls in.
type Intake interface {
	// Enqueue stores calls and returns one receipt for each, in order. With
	// an error nothing is stored.
	Enqueue(ctx context.Context, now time.Time, calls []Call) ([]Receipt, error)
}

// Register tells of a key without a call being handed in.
type Register interface {
	// Taken tells whether a call has the idempotency key of c, whatever it
	// says. Of c only Endpoint and Key are looked at.
	Taken(ctx context.Context, now time.Time, c *Call) (bool, error)
}

// Admission is what became of a call that was handed in.
type Admission uint8

// The outcomes.
const (
	New       Admission = iota // it is on disk
	Duplicate                  // the same ID, or the same key, is known with the same method, path and body
	Conflict                   // it is known with another; nothing was stored
	Full                       // the queue holds as many calls as it may; nothing was stored
)

// String returns the word used in logs.
func (a Admission) String() string {
	return [...]string{"new", "duplicate", "conflict", "full"}[a]
}

// Receipt answers one call of Enqueue.
type Receipt struct {
	Admission Admission
	ID        string // of the call that is kept; empty with Full
	State     State  // of that call; a Duplicate whose call was erased is Done
}

// Feed is what a worker needs of a store.
type Feed interface {
	// Claim hands out calls that are due, at most one lease each. It first
	// takes back the leases that have run out, see Rescue. What it carries is
	// bounded by Ask.Bytes: what is due beyond it is to be had at once, as Next
	// says, and keeps its turn.
	Claim(ctx context.Context, now time.Time, ask Ask) (Batch, error)
	// Settle ends claims. The ids of those whose lease was lost in the
	// meantime are returned; nothing was stored for them. It is one step, so
	// that whoever hands in large answers bounds how many bytes they have.
	Settle(ctx context.Context, now time.Time, claims []Settlement) (lost []string, err error)
	// Renew makes leases last until the given instant, and returns the ids of
	// those that were lost.
	Renew(ctx context.Context, until time.Time, claims []Claim) (lost []string, err error)
}

// Ask says what a worker can take.
type Ask struct {
	// Worker names the process among those that share the store.
	Worker string
	Max    int // calls
	// Share bounds how many calls of one gate this worker has running, those
	// of earlier claims included. 0: no bound but Max.
	Share int
	Lease time.Duration
	// Bytes bounds the requests of a claim, as they lie sealed, behind the first
	// call: that one is handed out however large it is. 0: ClaimBytes.
	Bytes int
	// Begins tells that the worker says of every call that is not Repeatable
	// when it is begun, see Beginner. Without it a claimed call counts as
	// begun. Stores that are no Beginner do not look at it.
	Begins bool
}

// ClaimBytes is how many bytes a claim carries that does not say so: a few
// calls with the largest bodies that are usual, and all slots of a worker with
// small ones.
const ClaimBytes = 16 << 20

// Carries is how many bytes a claim may carry.
func (a *Ask) Carries() int {
	if a.Bytes > 0 {
		return a.Bytes
	}
	return ClaimBytes
}

// Batch is what a worker got.
type Batch struct {
	Claims []Claim
	// Next is when to ask again, unless something is enqueued or settled
	// before. Zero: nothing is waiting for an instant.
	Next time.Time
}

// Claim is a call with the lease under which a worker has it.
type Claim struct {
	Call
	Lease Lease
}

// Lease fences a claim: what is written under a token that is no longer the
// call's own is refused.
type Lease struct {
	Token int64
	Epoch int64 // of the owner of the store; older ones are lost
	Until time.Time
}

// Scope is what a wait concerns.
type Scope uint8

// The scopes.
const (
	ScopeCall Scope = iota // only this call waits
	ScopeGate              // the gate closes; the call keeps its place
)

// Outcome is what came of a claim, as the one who sent it says.
type Outcome struct {
	// State is where the call goes: Queued waits until Until (in the past:
	// hands the call back), the others end it.
	State State
	// Until is the earliest instant of the next attempt.
	Until time.Time
	Scope Scope
	// Source is why it waits, a word of policy.WaitSource.
	Source string
	// Delay is stored as Ladder.Delay.
	Delay time.Duration
	// Waited is added to Ladder.Waited: time spent waiting under this claim.
	// Waits is added to Ladder.Waits: the waits under it, without that until Until.
	Waited time.Duration
	Waits  int
	Reason string
	Class  string
	// Attempts are those made under this claim, none if it only waited.
	// The store numbers them.
	Attempts []Attempt
	// Answer is kept once the call has ended: what a dead call was answered
	// is what its caller asks for. Nil: none.
	Answer *Result
	// KeptUntil is until when the call is kept once it has ended, if that is
	// longer than Keep says: whoever repeats it under its key is given the
	// first answer. Zero: as Keep says.
	KeptUntil time.Time
	// Note is for Broken states. Nil: the store writes one with Explain.
	Note *Note
}

// Settlement ends a claim.
type Settlement struct {
	ID    string
	Lease Lease
	Outcome
}

// Gate is the row of one quota key. With an empty Key it stands for the whole
// endpoint: what closes it closes all its keys.
type Gate struct {
	Endpoint string
	Key      string
	// Closed is until when nothing of it is claimed. Zero or past: open.
	Closed time.Time
	Source string // who closed it: a word of policy.WaitSource, or "operator"
	Paused bool   // until an operator resumes it
	// Limit is how many calls of it may run at once, in all processes. 0: no limit.
	Limit  int
	Served time.Time // when a call of it was last claimed

	Queued, Running int
	// Due is since when its longest-due call has been due. Zero: none is due
	// or waits.
	Due time.Time
}

// GateChange changes what is not nil of one gate.
type GateChange struct {
	Endpoint string
	Key      string // empty: the whole endpoint
	Closed   *time.Time
	Source   string // with Closed
	Paused   *bool
	Limit    *int
}

// Gates shows and sets gates.
type Gates interface {
	Gates(ctx context.Context) ([]Gate, error)
	// SetGate makes the gate if there is none.
	SetGate(ctx context.Context, now time.Time, change GateChange) error
}

// Reader shows what may be told.
type Reader interface {
	// Get returns the facts of one call. While its gate is closed for longer,
	// NextAt is when the gate opens.
	Get(ctx context.Context, id string) (Facts, error)
	// List returns a page of calls in the order in which they were enqueued,
	// without their trails.
	List(ctx context.Context, f Filter) (Page, error)
	// Counts counts all calls by endpoint, state and, once ended, reason.
	Counts(ctx context.Context) ([]Count, error)
}

// Index finds calls by the beginning of their ids.
type Index interface {
	// IDs returns the ids that begin with prefix, in their order, at most limit.
	IDs(ctx context.Context, prefix string, limit int) ([]string, error)
}

// Beyond is what sorts, byte by byte, after each id that begins with prefix.
func Beyond(prefix string) string { return prefix + string(utf8.MaxRune) }

// Filter selects calls. What is zero selects all.
type Filter struct {
	States        []State
	Endpoint      string
	Gate          string
	Tenant        string
	CorrelationID string
	Reason        string
	Class         string
	CreatedFrom   time.Time
	CreatedBefore time.Time
	// KeptBefore selects ended calls that will be erased before it.
	KeptBefore time.Time
	After      string // Page.Next of the page before
	Limit      int    // 0: DefaultLimit
}

// DefaultLimit is how many calls a page has.
const DefaultLimit = 100

// Page is a part of a list.
type Page struct {
	Calls []Facts
	Next  string // empty: this was the last
}

// Count is how many calls there are of a kind.
type Count struct {
	Endpoint string
	State    State
	Reason   string
	N        int
}

// Opener opens what is sealed. Whoever calls it for a person tells the audit log.
type Opener interface {
	// Reveal returns the whole call. ErrErased: it is done and its body gone.
	Reveal(ctx context.Context, id string) (Call, error)
	// Answer returns what the call was answered. ErrErased: nothing is kept.
	Answer(ctx context.Context, id string) (Result, error)
	// Revisions returns what the call said before it was edited, oldest first.
	Revisions(ctx context.Context, id string) ([]Request, error)
}

// Operator changes single calls.
type Operator interface {
	// Edit replaces what a call says; the original is kept as a revision. The
	// call must not be running or done. Its ID and the key it was enqueued
	// with go on standing for what was handed in then, so that a caller who
	// repeats that is told of this call. A new key is taken for
	// DefaultKeyWindow; ErrState: it is another call's.
	Edit(ctx context.Context, now time.Time, id string, r Request) error
	// Replay queues a call again that is broken or cancelled, with a new ladder.
	// A key that it has no longer is taken again for DefaultKeyWindow; ErrState:
	// it is another call's by now; ErrDoubtful: see Replay.Admits.
	Replay(ctx context.Context, now time.Time, again Replay) error
	// Cancel ends a queued call and frees its idempotency key. ErrState: it
	// runs or has ended.
	Cancel(ctx context.Context, now time.Time, id string) error
}

// Replay says when a call is sent again.
type Replay struct {
	ID      string
	At      time.Time // zero: now
	Expires time.Time // zero: never
	// EvenUnknown sends a write again of which nobody knows whether it was
	// carried out, see Facts.Doubtful.
	EvenUnknown bool
}

// Keeper keeps the store in order.
type Keeper interface {
	// Sweep ends the calls that have expired and erases what is no longer
	// kept, at most limit of each. It is called until More is false.
	Sweep(ctx context.Context, now time.Time, limit int) (Swept, error)
	// Purge erases ended calls by id; ids of others are skipped. Their
	// idempotency keys stay taken for their window.
	Purge(ctx context.Context, ids []string) (erased int, err error)
}

// Vault is for the rotation of keys.
type Vault interface {
	// Reseal seals every record again that is not under the active key, in
	// batches, and returns how many. It may be interrupted, also by the end of
	// the process, and repeated: it goes on with what is left. at, unless nil,
	// is told how many are done after each batch that had any.
	Reseal(ctx context.Context, at func(done int)) (int, error)
	// KeyUse counts what is under each key id. A key that nothing is under may
	// leave the ring.
	KeyUse(ctx context.Context) (map[string]Use, error)
}

// Use is what is under a key of the ring.
type Use struct {
	Records int // sealed with it: Reseal moves them to the active key
	Keys    int // idempotency keys whose digest it made: they stay for their window
}

// Swept is what one Sweep did.
type Swept struct {
	Expired int // queued calls that became dead
	Erased  int // ended calls
	Keys    int // idempotency keys whose window ended
	More    bool
}

// Store is all of it. Users of a store declare the part they use.
type Store interface {
	Intake
	Register
	Feed
	Gates
	Reader
	Index
	Opener
	Operator
	Keeper
	Vault
	io.Closer
}
