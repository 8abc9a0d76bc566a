package gateway

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

// Callbacks is whom the end of a call may be told, and how. What is sent is
// signed as Standard Webhooks say (webhook-id, webhook-timestamp and
// webhook-signature), and is a queued call itself: it survives a receiver that
// is down. It tells what may be told of a call, and where its answer is; the
// answer itself is asked for with the caller's token.
type Callbacks struct {
	// Hosts may be told, in lower case, with a port if it is not the usual one.
	Hosts []string
	// Secret signs: whsec_ and base64, or any text.
	Secret mask.Secret
	// Transport sends, with CallbackPolicy.
	Transport *heed.Transport
	// Slots is how many are sent at once, to all receivers together: however many
	// of them hang, the worker has the rest for the calls. 0: no bound.
	Slots int

	under atomic.Int32 // how many are under way
}

// callbackEndpoint is the name under which callbacks are queued. No endpoint
// of a heed.yaml can have it.
const callbackEndpoint = "_callback"

// CallbackPolicy is the agreement with receivers of callbacks; CallbackRules go with it.
func CallbackPolicy() policy.Policy {
	return policy.Policy{
		Endpoint: callbackEndpoint,
		Retry:    policy.Retry{Budget: time.Minute},
		Backoff:  policy.Backoff{Base: 5 * time.Second, Cap: 10 * time.Minute},
		Timeouts: policy.Timeouts{Connect: 5 * time.Second, Header: 15 * time.Second, Attempt: 20 * time.Second},
		Limits:   policy.Limits{Concurrency: 8, Learn: policy.Learn{Off: true}},
		Verify:   policy.Verify{Mode: policy.VerifyOff}, // the status says it, see receipt
		// The id of a message is its key: receivers drop what they have seen.
		Key: policy.Key{Header: "Webhook-Id", Methods: []string{http.MethodPost}},
	}
}

// CallbackRules say what the answer of a receiver means beyond what all answers
// do: one that has moved was not told. Standard Webhooks: a status other than
// 2xx is a failure, and redirects are not followed.
func CallbackRules() *classify.Classifier {
	c, _ := classify.New([]classify.Rule{{
		ID: "the receiver has moved", When: classify.Match{Statuses: []classify.StatusRange{{From: 300, To: 399}}},
		Then: classify.Verdict{Class: classify.Permanent, Executed: classify.No},
	}}) // a test has it that nothing is wrong with them
	return c
}

// callbackExpiry is how long a receiver may be down.
const callbackExpiry = 3 * 24 * time.Hour

// parent names, in the header of a queued callback, the call it tells of.
const parent = "Heed-Parent"

// callback reads Heed-Callback.
func (x *exchange) callback() (string, *refusal) {
	lines := x.r.Header["Heed-Callback"]
	if lines == nil {
		return "", nil
	}
	cb := x.table.Later.Callbacks
	if cb == nil || len(lines) != 1 {
		return "", no(badCallback, "")
	}
	if _, err := cb.target(lines[0]); err != nil {
		return "", no2(badCallback, err)
	}
	return lines[0], nil
}

// target is where a callback goes, if it may go there.
func (cb *Callbacks) target(text string) (*url.URL, error) {
	u, err := url.Parse(strings.Trim(text, " \t"))
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Opaque != "" || u.Fragment != "" || len(text) > 2048:
		return nil, errors.New("it is not a URL that can be called")
	case u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())):
		return nil, errors.New("it is not https")
	case !slices.Contains(cb.Hosts, strings.ToLower(u.Host)):
		return nil, errors.New("its host is not listed")
	}
	return u, nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// parentOf is the id of the call that a callback or a watchman is about.
func parentOf(c *queue.Call) string { return strings.Join(c.Header[parent], "") }

// endOf ends the id of the callback of a call: each life of a call, which a
// replay begins, has one end. No envelope can name a call so, see plainID.
func endOf(f *queue.Facts) string { return "~end-" + strconv.FormatInt(f.NextAt.UnixMilli(), 36) }

// callBack queues the callback of a call that has ended as f says, or is about
// to, and dismisses its watchman. What it tells is looked up when it is sent: a
// call whose end was not stored is not ended. A call that is sent once more
// because its end was lost has the same callback.
func (l *Later) callBack(ctx context.Context, c *queue.Call, f *queue.Facts) error {
	ctx = context.WithoutCancel(ctx)
	told, err := l.callbackOf(c, f)
	var receipts []queue.Receipt
	if err == nil {
		receipts, err = l.Store.Enqueue(ctx, time.Now(), []queue.Call{told})
	}
	if err == nil && receipts[0].Admission == queue.Full {
		err = errors.New("the queue is full")
	}
	if err != nil {
		return fmt.Errorf("callback of call %s: %w", c.ID, err)
	}
	_ = l.Store.Cancel(ctx, time.Now(), c.ID+late) // if it stays, it queues the same callback
	l.Wake()
	return nil
}

// callbackOf makes the callback of a call. It carries what is told, for when
// the call is erased before the receiver is well.
func (l *Later) callbackOf(c *queue.Call, f *queue.Facts) (queue.Call, error) {
	u, err := l.Callbacks.allowed(c.Callback)
	if err != nil {
		return queue.Call{}, err
	}
	return queue.Call{
		Facts: queue.Facts{
			ID: c.ID + endOf(f), Endpoint: callbackEndpoint, Gate: strings.ToLower(u.Host), Method: http.MethodPost,
			Template: mask.Template(u.Path), Tenant: c.Tenant, Priority: c.Priority, CorrelationID: c.CorrelationID,
			TraceParent: c.TraceParent, Repeatable: true, Expires: time.Now().Add(callbackExpiry),
		},
		Request: queue.Request{Path: c.Callback, Header: http.Header{parent: {c.ID}}, Body: message(f)},
	}, nil
}

func (cb *Callbacks) allowed(text string) (*url.URL, error) {
	if cb == nil {
		return nil, errors.New("queue.callbacks lists no host any more")
	}
	return cb.target(text)
}

// untold writes down that a callback could not even be queued.
func (t *table) untold(err error) {
	if err != nil && t.Log != nil {
		t.Log.Error("callback not queued", slog.String("kind", "queue"), slog.String("error", mask.Error(err)),
			slog.String("advice", "whoever waits for it has to ask for the call instead"))
	}
}

// errNeverEnded tells that the end of which a callback was to tell was not
// stored: the process broke off, and the call was sent again. How that ended is
// told by another callback.
var errNeverEnded = errors.New("the call did not end so")

// news is what a callback tells, as far as that is known by now. Nothing: the
// call has not ended.
func (t *table) news(ctx context.Context, c *queue.Call) ([]byte, error) {
	f, err := t.Later.Store.Get(ctx, parentOf(c))
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return c.Body, err
	case err != nil:
		return nil, nil
	case !f.State.Ended() && len(c.Body) > 0 && f.Ladder.Attempts < len(f.Trail): // replayed since
		return c.Body, nil
	case !f.State.Ended():
		return nil, nil
	case len(c.Body) == 0 || strings.HasSuffix(c.ID, endOf(&f)):
		return message(&f), nil
	}
	// That is another end, which has a callback of its own.
	if first := f.Ladder.First; !first.IsZero() && !first.After(c.Created) { // of the same ladder: it was not replayed
		return nil, errNeverEnded
	}
	return c.Body, nil
}

// slotless is for how long nothing more is sent to a receiver while all slots are
// taken: one row of the queue is written for it, and no callback.
const slotless = time.Second

// begin takes a slot, which end gives back. False: there is none.
func (cb *Callbacks) begin() bool {
	if cb == nil {
		return true
	}
	if n := int(cb.under.Add(1)); cb.Slots > 0 && n > cb.Slots {
		cb.end()
		return false
	}
	return true
}

func (cb *Callbacks) end() {
	if cb != nil {
		cb.under.Add(-1)
	}
}

// sendCallback tells the end of a call.
func (t *table) sendCallback(ctx context.Context, c *queue.Call) queue.Outcome {
	now, cb := time.Now(), t.Later.Callbacks
	if !cb.begin() {
		return queue.Outcome{State: queue.Queued, Until: now.Add(slotless), Scope: queue.ScopeGate, Source: string(policy.WaitConcurrency)}
	}
	defer cb.end()
	body, err := t.news(ctx, c)
	switch {
	case errors.Is(err, errNeverEnded):
		return queue.Outcome{State: queue.Cancelled, Reason: queue.ReasonCancelled}
	case body == nil && err != nil:
		return t.lost(ctx, c)
	case body == nil:
		wait := time.Second << min(c.Ladder.Waits, 6) // it may have been lost, and the call be sent again much later
		return queue.Outcome{State: queue.Queued, Until: now.Add(wait), Source: string(policy.WaitBackoff)}
	}
	u, err := cb.allowed(c.Path)
	if err != nil {
		o := (&ended{reason: heed.NotAllowed, why: err.Error()}).outcome(now, c)
		t.finish(ctx, c, &o)
		return o
	}
	signed := *c
	signed.Key = "msg_" + c.ID
	req := &http.Request{Method: http.MethodPost, URL: u, ContentLength: int64(len(body)), Header: http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"heed"},
		"Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)},
		"Webhook-Signature": {cb.sign(signed.Key, now, body)},
	}}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	rt := &route{Endpoint: &Endpoint{Name: callbackEndpoint, URL: u, Transport: cb.Transport}}
	e := (&sending{table: t, route: rt, call: &signed}).send(req.WithContext(ctx))
	o := e.outcome(time.Now(), c)
	t.finish(ctx, c, &o)
	return o
}

// What is read of what a receiver says beside its status, for a person to look
// at: it must not cost a slot, nor memory or disk.
const (
	receiptBytes = 64 << 10
	receiptTime  = time.Second
)

// receipt reads the body of a receiver's answer. It is not whole if it is
// larger, slower or shorter than it should be, which is nothing to the callback.
func receipt(r io.ReadCloser) (body []byte, whole bool) {
	late := time.AfterFunc(receiptTime, func() { r.Close() })
	defer late.Stop()
	body, err := io.ReadAll(io.LimitReader(r, receiptBytes+1))
	return body, err == nil && len(body) <= receiptBytes
}

// tidings are what a callback says.
type tidings struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      toldCall  `json:"data"`
}

type toldCall struct {
	ID            string `json:"id"`
	State         string `json:"state"`
	Endpoint      string `json:"endpoint"`
	Method        string `json:"method"`
	CorrelationID string `json:"correlation_id,omitempty"`
	Status        int    `json:"status,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Attempts      int    `json:"attempts"`
	Location      string `json:"location"`
}

func message(f *queue.Facts) []byte {
	body, err := json.Marshal(tidings{
		Type: "call." + f.State.String(), Timestamp: f.Ended.UTC(),
		Data: toldCall{f.ID, f.State.String(), f.Endpoint, f.Method, f.CorrelationID, f.Status, f.Reason, f.Ladder.Attempts, callsPath + "/" + f.ID},
	})
	if err != nil { // strings and numbers only
		return nil
	}
	return body
}

// sign is version 1 of the signatures of Standard Webhooks: HMAC-SHA256 over
// id, timestamp and body, each before a dot but the last.
func (cb *Callbacks) sign(id string, at time.Time, body []byte) string {
	m := hmac.New(sha256.New, cb.key())
	fmt.Fprintf(m, "%s.%d.", id, at.Unix())
	m.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

func (cb *Callbacks) key() []byte {
	if coded, ok := strings.CutPrefix(string(cb.Secret), "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(coded); err == nil {
			return key
		}
	}
	return []byte(cb.Secret)
}
