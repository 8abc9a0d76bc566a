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
	"time"

	"github.com/heedproject/heed"
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
}

// callbackEndpoint is the name under which callbacks are queued. No endpoint
// of a heed.yaml can have it.
const callbackEndpoint = "_callback"

// CallbackPolicy is the agreement with receivers of callbacks.
func CallbackPolicy() policy.Policy {
	return policy.Policy{
		Endpoint: callbackEndpoint,
		Retry:    policy.Retry{Budget: time.Minute},
		Backoff:  policy.Backoff{Base: 5 * time.Second, Cap: 10 * time.Minute},
		Timeouts: policy.Timeouts{Connect: 5 * time.Second, Header: 15 * time.Second, Attempt: 20 * time.Second},
		Limits:   policy.Limits{Concurrency: 8, Learn: policy.Learn{Off: true}},
		// The id of a message is its key: receivers drop what they have seen.
		Key: policy.Key{Header: "Webhook-Id", Methods: []string{http.MethodPost}},
	}
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

// callBack queues the callback of a call that is about to end. What it tells
// is looked up when it is sent: a call whose end was not stored is not ended.
// A call that is sent once more because its end was lost has the same one.
func (l *Later) callBack(ctx context.Context, c *queue.Call) error {
	told, err := l.callbackOf(c, "-end-"+strconv.FormatInt(c.NextAt.UnixMilli(), 36))
	if err == nil {
		_, err = l.Store.Enqueue(context.WithoutCancel(ctx), time.Now(), []queue.Call{told})
	}
	if err != nil {
		return fmt.Errorf("callback of call %s: %w", c.ID, err)
	}
	_ = l.Store.Cancel(context.WithoutCancel(ctx), time.Now(), c.ID+late) // if it stays, it finds nothing to tell
	l.Wake()
	return nil
}

// late ends the id of a watchman.
const late = "-late"

// watch queues the watchman of a call that was accepted. Without one only the
// end of a call that nobody sends stays untold.
func (l *Later) watch(ctx context.Context, c *queue.Call, id string) {
	if c.Callback == "" {
		return
	}
	call := *c
	call.ID = id
	if w, err := l.watchman(&call); err == nil {
		_, _ = l.Store.Enqueue(ctx, time.Now(), []queue.Call{w})
	}
}

// callbackOf makes the callback of a call.
func (l *Later) callbackOf(c *queue.Call, suffix string) (queue.Call, error) {
	u, err := l.Callbacks.allowed(c.Callback)
	if err != nil {
		return queue.Call{}, err
	}
	return queue.Call{
		Facts: queue.Facts{
			ID: c.ID + suffix, Endpoint: callbackEndpoint, Gate: strings.ToLower(u.Host), Method: http.MethodPost,
			Template: mask.Template(u.Path), Tenant: c.Tenant, Priority: c.Priority, CorrelationID: c.CorrelationID,
			TraceParent: c.TraceParent, Repeatable: true, Expires: time.Now().Add(callbackExpiry),
		},
		Request: queue.Request{Path: c.Callback, Header: http.Header{parent: {c.ID}}},
	}, nil
}

// watchman makes the callback that is sent when a call has expired in the
// queue, or was cancelled: nobody sends it then, so that nobody would tell.
func (l *Later) watchman(c *queue.Call) (queue.Call, error) {
	w, err := l.callbackOf(c, late)
	if err != nil {
		return w, err
	}
	w.NotBefore = c.Expires.Add(watchAfter)
	w.Expires = c.Expires.Add(callbackExpiry)
	w.Header[watches] = []string{"true"}
	return w, nil
}

// watchAfter is how long after its expiry a call is looked at again; by then
// the store has ended it.
const watchAfter = 30 * time.Second

// watches marks a watchman.
const watches = "Heed-Watches"

// unseen tells whether the end of a call came without anybody sending it.
func unseen(f *queue.Facts) bool {
	return f.State == queue.Cancelled || f.State == queue.Dead && f.Reason == queue.ReasonExpired && !f.Ended.Before(f.Expires)
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

// sendCallback tells the end of a call.
func (t *table) sendCallback(ctx context.Context, c *queue.Call) queue.Outcome {
	now := time.Now()
	f, err := t.Later.Store.Get(ctx, strings.Join(c.Header[parent], ""))
	watchman := len(c.Header[watches]) > 0
	switch {
	case errors.Is(err, queue.ErrNotFound), err == nil && watchman && !unseen(&f):
		return queue.Outcome{State: queue.Cancelled, Reason: queue.ReasonCancelled} // nothing is left to tell
	case err != nil || !f.State.Ended():
		return queue.Outcome{State: queue.Queued, Until: now.Add(time.Second), Source: string(policy.WaitBackoff)}
	}
	u, err := t.Later.Callbacks.allowed(c.Path)
	if err != nil {
		return (&ended{reason: heed.NotAllowed, why: err.Error()}).outcome(now, c)
	}
	body := message(&f)
	signed := *c
	signed.Key = "msg_" + c.ID
	req := &http.Request{Method: http.MethodPost, URL: u, ContentLength: int64(len(body)), Header: http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"heed"},
		"Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)},
		"Webhook-Signature": {t.Later.Callbacks.sign(signed.Key, now, body)},
	}}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	rt := &route{Endpoint: &Endpoint{Name: callbackEndpoint, URL: u, Transport: t.Later.Callbacks.Transport}}
	e := (&sending{table: t, route: rt, call: &signed}).send(req.WithContext(ctx))
	o := e.outcome(time.Now(), c)
	t.finish(ctx, c, &o)
	return o
}

// told is what a callback says.
type told struct {
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
	body, err := json.Marshal(told{
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
