package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
)

// withCallbacks lets hooks.test be told, over the same wire as the API.
func withCallbacks(t *testing.T, f func(*later)) {
	t.Helper()
	bubble(t, nil, func(l *later) {
		l.set.Later.Callbacks = &Callbacks{
			Hosts: []string{"hooks.test"}, Secret: "whsec_" + "c2VjcmV0LW9mLXRoZS1ob29r",
			Transport: &heed.Transport{Base: l, Policy: CallbackPolicy(), Classifier: CallbackRules(), Seed: 1},
		}
		f(l)
	})
}

// hooks are the requests to the receiver of callbacks.
func (l *later) hooks() (list []sight) {
	for _, s := range l.sights() {
		if strings.HasPrefix(s.url, "https://hooks.test/") {
			list = append(list, s)
		}
	}
	return list
}

// told is what the receiver was told, in order.
func (l *later) told() (said []string) {
	l.Helper()
	for _, s := range l.hooks() {
		var m tidings
		if err := json.Unmarshal([]byte(s.body), &m); err != nil {
			l.Fatal(err)
		}
		said = append(said, m.Type+" "+m.Data.Reason)
	}
	return said
}

func TestTheEndOfACallIsToldOnceItIsStoredAndSigned(t *testing.T) {
	withCallbacks(t, func(l *later) {
		at := l.async("POST", "/api/x", "b", "Heed-Callback", "https://hooks.test/done?for=7", "Heed-Correlation-Id", "c-1")
		l.end(at)
		time.Sleep(time.Minute)
		told := l.hooks()
		if len(told) != 1 || told[0].url != "https://hooks.test/done?for=7" || told[0].method != "POST" {
			t.Fatalf("got %+v", told)
		}
		var got struct {
			Type string         `json:"type"`
			Data map[string]any `json:"data"`
		}
		if err := json.Unmarshal([]byte(told[0].body), &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"id": strings.TrimPrefix(at, "/_heed/calls/"), "state": "done", "endpoint": "api", "method": "POST",
			"correlation_id": "c-1", "status": 200.0, "attempts": 1.0, "location": at}
		if diff := cmp.Diff(got.Data, want); diff != "" || got.Type != "call.done" {
			t.Errorf("%s (-got +want):\n%s", got.Type, diff)
		}
		h := told[0].header
		m := hmac.New(sha256.New, []byte("secret-of-the-hook"))
		fmt.Fprintf(m, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), told[0].body)
		if sig := "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil)); h.Get("Webhook-Signature") != sig || !strings.HasPrefix(h.Get("Webhook-Id"), "msg_") {
			t.Errorf("got %v, want the signature %s", h, sig)
		}
	})
}

func TestAReceiverThatIsDownIsToldLaterUnderTheSameId(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if r.URL.Host == "hooks.test" && len(l.hooks()) < 3 {
				return 503, nil, "down"
			}
			return 200, nil, "x"
		}
		l.end(l.async("GET", "/api/x", "", "Heed-Callback", "https://hooks.test/h"))
		time.Sleep(time.Hour)
		told := l.hooks()
		if len(told) != 3 || told[2].header.Get("Webhook-Id") != told[0].header.Get("Webhook-Id") ||
			told[2].header.Get("Webhook-Timestamp") == told[0].header.Get("Webhook-Timestamp") {
			t.Errorf("got %+v, want three with one id, each with the time of its sending", told)
		}
		var page listed
		if l.operate("GET", "/_heed/calls?endpoint=_callback&state=done", "", &page); len(page.Calls) != 1 {
			t.Errorf("the callback is not told as a queued call: %+v", page)
		}
	})
}

func TestOnlyListedHostsAreTold(t *testing.T) {
	withCallbacks(t, func(l *later) {
		for _, to := range []string{"http://hooks.test/", "https://evil.test/", "https://hooks.test:444/", "https://u:p@hooks.test/", "/path", "https://hooks.test/#x"} {
			wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Prefer", "respond-async", "Heed-Callback", to), 403, "callback-not-allowed")
		}
		wantProblem(t, l.do(l.Gateway, "GET", "/api/x", "", "Heed-Callback", "https://hooks.test/"), 400, "callback-needs-async")
		if n := len(l.sights()); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestACallThatIsCutOffTellsItsCallbackWhatBecameOfIt(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if r.URL.Host == "hooks.test" {
				return 204, nil, ""
			}
			return 422, nil, "no"
		}
		l.end(l.async("POST", "/api/x", "b", "Heed-Callback", "https://hooks.test/h"))
		time.Sleep(time.Minute)
		if told := l.hooks(); len(told) != 1 || !strings.Contains(told[0].body, `"type":"call.dead"`) || !strings.Contains(told[0].body, `"reason":"permanent"`) {
			t.Errorf("got %+v", told)
		}
	})
}

func TestACallbackPolicyIsValid(t *testing.T) {
	if bad := CallbackPolicy().Validate(); len(bad) > 0 {
		t.Errorf("got %v", bad)
	}
}

func TestTheRulesForCallbacksAreValid(t *testing.T) {
	if CallbackRules() == nil {
		t.Error("something is wrong with them")
	}
}

// recites is a receiver's body: it counts what is read of it, and dawdles
// before each piece.
type recites struct {
	step time.Duration
	read *atomic.Int64
	done chan struct{}
	once *sync.Once
}

func (r recites) Read(p []byte) (int, error) {
	select {
	case <-time.After(r.step):
		r.read.Add(int64(len(p)))
		return len(p), nil
	case <-r.done:
		return 0, io.ErrUnexpectedEOF
	}
}

func (r recites) Close() error {
	r.once.Do(func() { close(r.done) })
	return nil
}

// reciting answers callbacks with a body that goes on for ever.
type reciting struct {
	*later
	body recites
}

func (w reciting) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.later.RoundTrip(r)
	if err == nil {
		resp.Body, resp.ContentLength = w.body, -1
	}
	return resp, err
}

func TestTheStatusOfAReceiverCountsWhateverItSaysAfterIt(t *testing.T) {
	for name, step := range map[string]time.Duration{"a flood": 0, "a drip": 100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			withCallbacks(t, func(l *later) {
				body := recites{step, new(atomic.Int64), make(chan struct{}), new(sync.Once)}
				l.set.Later.Callbacks.Transport.Base = reciting{l, body}
				l.end(l.async("GET", "/api/x", "", "Heed-Callback", "https://hooks.test/h"))
				time.Sleep(5 * time.Second)
				var page listed
				l.operate("GET", "/_heed/calls?endpoint=_callback&state=done", "", &page)
				if len(page.Calls) != 1 || len(l.hooks()) != 1 || body.read.Load() > 256<<10 {
					t.Errorf("sent %d times, %d bytes read of the answer; done: %+v", len(l.hooks()), body.read.Load(), page)
				}
			})
		})
	}
}

func TestAReceiverThatHasMovedWasNotTold(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if r.URL.Host == "hooks.test" {
				return 302, http.Header{"Location": {"https://api.test/elsewhere"}}, ""
			}
			return 200, nil, "x"
		}
		l.end(l.async("GET", "/api/x", "", "Heed-Callback", "https://hooks.test/h"))
		time.Sleep(time.Minute)
		var page listed
		if l.operate("GET", "/_heed/calls?endpoint=_callback&state=dead", "", &page); len(page.Calls) != 1 || len(l.hooks()) != 1 || len(l.sights()) != 2 {
			t.Errorf("%d requests, %d of them to the receiver; dead: %+v", len(l.sights()), len(l.hooks()), page)
		}
	})
}

func TestACallThatExpiresInTheQueueIsToldToo(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		l.async("GET", "/api/x", "", "Heed-Callback", "https://hooks.test/h", "Heed-Budget", "10m")
		l.operate("POST", "/_heed/calls/cancel", `{"filter":{"ids":["`+l.id(l.async("GET", "/api/y", "", "Heed-Callback", "https://hooks.test/h", "Heed-Budget", "20m"))+`"]}}`, &done{})
		time.Sleep(10 * time.Minute)
		if _, err := l.store.Sweep(l.Context(), time.Now(), 100); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		said := l.told()
		if diff := cmp.Diff(said, []string{"call.cancelled canceled", "call.dead expired"}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
	})
}

func TestTheEndOfACallThatWasReplayedIsToldBeforeItEndsAgain(t *testing.T) {
	withCallbacks(t, func(l *later) {
		var well atomic.Bool
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			switch {
			case r.URL.Host == "api.test":
				return 400, nil, ""
			case !well.Load():
				return 503, nil, ""
			}
			return 204, nil, ""
		}
		at := l.async("POST", "/api/x", "b", hook...)
		l.end(at)
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		l.operate("POST", "/_heed/calls/"+l.id(at)+"/replay", "", &opened{})
		before := len(l.hooks())
		time.Sleep(time.Hour)
		well.Store(true)
		time.Sleep(time.Hour)
		if n := len(l.hooks()) - before; n < 3 || l.told()[len(l.told())-1] != "call.dead permanent" {
			t.Errorf("it was told %d more times: %v", n, l.told())
		}
	})
}

func TestReceiversThatHangLeaveSlotsToTheCalls(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.set.Later.Callbacks.Slots = 32 // of 64
		l.set.Later.Callbacks.Hosts = nil
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if strings.HasSuffix(r.URL.Host, ".hooks.test") {
				<-r.Context().Done()
			}
			return 200, nil, "x"
		}
		for i := range 8 {
			l.set.Later.Callbacks.Hosts = append(l.set.Later.Callbacks.Hosts, fmt.Sprintf("%d.hooks.test", i))
		}
		var last string
		for _, host := range l.set.Later.Callbacks.Hosts {
			for range 8 {
				last = l.async("GET", "/api/x", "", "Heed-Callback", "https://"+host+"/h")
			}
		}
		l.end(last)
		time.Sleep(5 * time.Second)
		asked := time.Now()
		if a := l.do(l.Gateway, "GET", "/api/y", "", "Prefer", "respond-async, wait=10"); a.StatusCode != 200 || time.Since(asked) > time.Second {
			t.Errorf("got %d after %v, want the answer at once", a.StatusCode, time.Since(asked))
		}
	})
}
