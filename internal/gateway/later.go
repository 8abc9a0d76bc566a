package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// Store is what the gateway needs of a queue.
type Store interface {
	queue.Intake
	queue.Register
	queue.Reader
	queue.Index
	queue.Opener
	queue.Operator
	queue.Gates
	queue.Keeper
}

// Later is the queue behind the gateway. It stays the same when Settings are
// swapped.
type Later struct {
	Store Store
	// Bell rings when a call has been settled.
	Bell *queue.Bell
	// Wake tells the worker that there is something new.
	Wake func()
	// Body and Answer are the most that is kept of one request and one answer,
	// in bytes.
	Body, Answer int64
	// Window is how long an idempotency key stays taken, and the answer of its
	// call is kept: a repeat within it gets the first answer. So the disk holds
	// the answers of all calls with a key that came within it.
	Window time.Duration
	// Ending is closed when the process is about to end: who waits for the end
	// of a call that is on disk is told how it stands. nil: it never ends.
	Ending <-chan struct{}
	// Callbacks is whom the end of a call may be told. nil: nobody.
	Callbacks *Callbacks
	// Shared tells that other gateways have the store too: what this one does not
	// know, such as an endpoint, another one may.
	Shared bool
	// Reserve is room on the disk for those who make room on it. nil: none.
	Reserve *queue.Reserve
	// Taken is told of each call that was handed in whether it is on disk, or
	// known: else why it is not, a word of Refusals, with the error if the store
	// failed. nil: nobody.
	Taken func(refused string, err error)
	// Trouble tells why nothing is taken in now. Empty, or nil: it is.
	Trouble func() string
}

// Why a call was not taken in.
const (
	RefusedStorage = "storage" // the disk is full, or fails
	RefusedFull    = "full"    // the queue holds as many calls as it may
	RefusedClosed  = "closed"  // the process ends
)

// Refusals lists them.
var Refusals = []string{RefusedStorage, RefusedFull, RefusedClosed}

// taken tells what became of a call that was handed in.
func (l *Later) taken(receipts []queue.Receipt, err error) {
	if l.Taken == nil || errors.Is(err, queue.ErrInvalid) {
		return
	}
	refused := ""
	switch {
	case errors.Is(err, queue.ErrClosed):
		refused = RefusedClosed
	case err != nil:
		refused = RefusedStorage
	case receipts[0].Admission == queue.Full:
		refused = RefusedFull
	}
	l.Taken(refused, err)
}

// Async is what an endpoint does later.
type Async struct {
	// Methods are answered with 202, whatever the caller prefers.
	Methods []string
	// Enqueue takes a call in that finds the breaker open.
	Enqueue bool
	// Expiry is how long a call is worth sending. 0: a day.
	Expiry time.Duration
	// RequireKey refuses a write without an idempotency key; DeriveKey makes
	// one of what the write is.
	RequireKey, DeriveKey bool
	// Durable puts a write with a key on disk before it is sent, although its
	// caller waits: it outlives the caller, and a repeat gets the first answer.
	Durable bool
	// Pass leaves Prefer: respond-async to the provider.
	Pass bool
}

func (a *Async) expiry() time.Duration {
	if a.Expiry > 0 {
		return a.Expiry
	}
	return 24 * time.Hour
}

// MainGate is the quota key of the calls of an endpoint: they share its one
// credential. Credentials of callers are not kept.
const MainGate = "main"

// poll is how late a gateway may notice the end of a call that another
// gateway made.
const poll = time.Second

// The problems of what is answered later.
var (
	noQueue = kind{"async-not-available", 501, "http_request_denied", "This gateway has no queue to keep calls in",
		"Add queue: {} to heed.yaml, or leave Prefer: respond-async out and wait for the answer; Heed-Budget says how long. " +
			"If the provider is meant, write async: {prefer: pass} under its endpoint."}
	queueFull = kind{"queue-full", 503, "connection_limit_reached", "The queue holds as many calls as it may",
		"Try again after Retry-After, or raise queue.max.calls in heed.yaml."}
	diskFull = kind{"queue-disk-full", 507, "proxy_internal_error", "The disk of the queue is full",
		"Nothing was done. Make room on the disk of the queue: heed calls purge --state done and heed calls cancel work on a full disk too, " +
			"with room that is kept for them. Then send the call again; calls whose callers wait go on."}
	queueDown = kind{"queue-unavailable", 503, "proxy_internal_error", "The queue cannot be written or read",
		"Nothing was accepted. The log of the process says why; send the call again when that is mended."}
	tooLargeToKeep = kind{"body-too-large-to-queue", 413, "http_request_error", "The request body is larger than what is kept in the queue",
		"Send less at once, wait for the answer instead, or raise queue.max.body in heed.yaml."}
	keyRequired = kind{"idempotency-key-required", 400, "http_request_error", "The write needs an idempotency key",
		"Send Idempotency-Key: with one key per operation, the same whenever it is sent again."}
	keyReused = kind{"idempotency-key-reused", 422, "http_request_error", "The idempotency key belongs to another request",
		"Use a new key for a new operation; send the same body to repeat one."}
	keyRunning = kind{"idempotency-key-in-use", 409, "http_request_denied", "The first request with this idempotency key has not ended",
		"Ask at Location how it stands, or repeat the request after Retry-After."}
	badEnvelope = kind{"bad-envelope", 400, "http_request_error", "The body is not an envelope",
		"Send one JSON object: {\"heed\": 1, \"endpoint\": …, \"method\": …, \"path\": …, \"body\": base64}."}
	noCall = kind{"unknown-call", 404, "http_request_denied", "There is no such call",
		"It may have been erased: answers are kept for queue.result_ttl, those with an idempotency key for queue.window, other calls for queue.dead_ttl."}
	callRuns = kind{"call-running", 409, "http_request_denied", "The call is being sent",
		"Wait for its end."}
	callEnded = kind{"call-ended", 409, "http_request_denied", "The call has ended",
		"Ask at its Location how."}
	callOpen = kind{"call-not-ended", 409, "http_request_denied", "The call has not ended",
		"Ask again after Retry-After, or with ?wait=30s."}
	notKept = kind{"answer-not-kept", 410, "proxy_internal_response", "The answer is no longer kept",
		"It was larger than queue.max.answer, or older than queue.result_ttl (with an idempotency key: than queue.window)."}
	unread = kind{"answer-unavailable", 503, "proxy_internal_error", "The answer of the call cannot be read now",
		"The call has ended and need not be sent again: ask at Location after Retry-After."}
	badCallback = kind{"callback-not-allowed", 403, "http_request_denied", "Heed-Callback names a host that may not be told",
		"Use an https URL on a host of queue.callbacks.hosts in heed.yaml."}
	lateCallback = kind{"callback-needs-async", 400, "http_request_error", "Heed-Callback is for calls that are answered later",
		"Send Prefer: respond-async with it, or leave it out."}
	credentialLost = kind{"credential-not-kept", 403, "http_request_denied", "The queue keeps no credential of a caller",
		"Wait for the answer instead, or give the endpoint a credential of its own under auth."}
)

// laterKinds are those that no call ends with.
var laterKinds = []kind{noQueue, queueFull, diskFull, queueDown, tooLargeToKeep, keyRequired, keyReused, keyRunning, badEnvelope,
	noCall, callRuns, callEnded, callOpen, notKept, unread, badCallback, lateCallback, credentialLost, paused, draining, recovering}

// storeRefusal says what a failing store means to a caller.
func storeRefusal(err error) *refusal {
	switch {
	case errors.Is(err, queue.ErrFull):
		return no(diskFull, "")
	case errors.Is(err, queue.ErrNotFound):
		return no(noCall, "")
	case errors.Is(err, queue.ErrErased):
		return no(notKept, "")
	case errors.Is(err, queue.ErrInvalid):
		return no(badEnvelope, "")
	}
	r := refuse(queueDown, "")
	r.retryAt = time.Now().Add(5 * time.Second)
	return &r
}

// handover is how a request is answered later.
type handover struct {
	// wait is how long an answer is waited for before 202 is given.
	wait time.Duration
	// applied is told as Preference-Applied.
	applied string
	// kept tells that the caller expects the answer itself: the queue only
	// makes sure that nothing is lost.
	kept bool
}

// handover finds out whether the queue takes the request.
func (x *exchange) handover() (h handover, later bool) {
	a := &x.route.Async
	if lines := x.r.Header["Prefer"]; lines != nil && !a.Pass {
		if p := preferAsync(lines); p.async {
			h.wait, h.applied = p.wait, "respond-async"
			if p.waits {
				h.applied += ", wait=" + strconv.FormatInt(int64(p.wait/time.Second), 10)
			}
			return h, true
		}
	}
	if len(a.Methods) > 0 && slices.Contains(a.Methods, x.r.Method) {
		if x.asked.preferred {
			h.wait, h.applied = x.asked.Budget, "wait="+strconv.FormatInt(int64(x.asked.Budget/time.Second), 10)
		}
		return h, true
	}
	if a.Durable && x.mayQueue() && x.mayHaveKey() {
		return handover{wait: x.budget(), kept: true}, true
	}
	return h, false
}

// budget is how long the caller waits.
func (x *exchange) budget() time.Duration {
	granted := x.route.Transport.Policy.WithDefaults().Retry.Budget
	if b := x.asked.Budget; b > 0 && b < granted {
		return b
	}
	return granted
}

// mayHaveKey tells whether the write has a key, or gets one.
func (x *exchange) mayHaveKey() bool {
	if safe(x.r.Method) {
		return false
	}
	k := &x.route.Transport.Policy.Key
	return x.asked.Key != "" || x.r.Header["Idempotency-Key"] != nil || x.route.Async.DeriveKey ||
		x.route.keyed && k.From != policy.KeyGiven && k.From != ""
}

func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// idempotent tells whether a method may be repeated without a key (RFC 9110 §9.2.2).
func idempotent(method string) bool {
	return safe(method) || method == http.MethodPut || method == http.MethodDelete
}

// owner is the tenant under which the queue keeps the calls of a client: its
// name, which no other client can take, before whatever it calls its own.
func owner(who *Client, tenant string) string {
	switch {
	case who == nil:
		return tenant
	case tenant == "" || tenant == who.Name:
		return who.Name
	}
	return who.Name + "/" + tenant
}

// owns tells whether who may see what tenant has queued.
func owns(who *Client, tenant string) bool {
	return who == nil || tenant == who.Name || strings.HasPrefix(tenant, who.Name+"/")
}

// answersIn is for how long a store is waited for that may not answer at all.
const answersIn = 2 * time.Second

// answers tells whether the store can be read.
func (l *Later) answers(ctx context.Context) bool {
	ctx, done := context.WithTimeout(ctx, answersIn)
	defer done()
	_, err := l.Store.Get(ctx, "-") // which no call is called
	return err == nil || errors.Is(err, queue.ErrNotFound)
}

// await returns the facts of a call when it has ended, or after wait.
func (l *Later) await(ctx context.Context, id string, wait time.Duration) (queue.Facts, error) {
	ctx, done := context.WithTimeout(ctx, wait)
	defer done()
	if l.Ending != nil {
		go func() {
			select {
			case <-l.Ending:
				done()
			case <-ctx.Done():
			}
		}()
	}
	return l.Bell.Await(ctx, l.Store, id, poll)
}
