package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
	"github.com/heedproject/heed/policy"
)

func TestTheWaitOfACallerIsNotTheLifeOfACallOfAPausedEndpoint(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		a := l.do(l.Gateway, "GET", "/api/y", "", "Prefer", "respond-async, wait=5")
		time.Sleep(time.Minute)
		l.operate("POST", "/_heed/endpoints/api/resume", "", &endpointStanding{})
		if s := l.end(a.Header.Get("Location")); s.State != "done" {
			t.Errorf("got %s (%s), want it to be sent when the endpoint goes on", s.State, s.Reason)
		}
	})
}

// blind is a store that cannot be read once it is told so.
type blind struct {
	Store
	shut, mute bool // nothing, and no answer
}

func (b *blind) Get(ctx context.Context, id string) (queue.Facts, error) {
	if b.shut {
		return queue.Facts{}, queue.ErrStorage
	}
	return b.Store.Get(ctx, id)
}

func (b *blind) Answer(ctx context.Context, id string) (queue.Result, error) {
	if b.shut || b.mute {
		return queue.Result{}, queue.ErrStorage
	}
	return b.Store.Answer(ctx, id)
}

func TestACallThatIsOnDiskIsNotRefusedWhenItCannotBeReadAgain(t *testing.T) {
	for _, b := range []blind{{shut: true}, {mute: true}} {
		bubble(t, nil, func(l *later) {
			b.Store = l.store
			l.set.Later.Store = &b
			a := l.do(l.Gateway, "POST", "/api/y", "b", "Prefer", "respond-async, wait=5")
			if a.StatusCode != 202 || a.Header.Get("Location") == "" {
				t.Errorf("got %d %s, want 202: it is on disk", a.StatusCode, a.text)
			}
		})
	}
}

func TestAWriteThatIsOnDiskIsNotSaidToBeRefused(t *testing.T) {
	for _, b := range []blind{{shut: true}, {mute: true}} {
		bubble(t, func(s *Settings, _ *policy.Policy) { s.Endpoints[0].Async.Durable = true }, func(l *later) {
			b.Store = l.store
			l.set.Later.Store = &b
			a := l.do(l.Gateway, "POST", "/api/y", "b", "Idempotency-Key", "k", "Heed-Budget", "5s")
			if a.Header.Get("Location") == "" || strings.Contains(a.text, "Nothing was accepted") {
				t.Errorf("got %d %v %s, want where the call is found: it is on disk", a.StatusCode, a.Header, a.text)
			}
		})
	}
}

func TestTheWaitOfACallerIsNotTheLifeOfACallThatFindsTheBreakerOpen(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Endpoints[0].Async.Enqueue = true }, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/breaker", `{"state":"open","for":"1m"}`, &endpointStanding{})
		a := l.do(l.Gateway, "GET", "/api/y", "", "Prefer", "wait=5")
		if a.StatusCode != 202 {
			t.Fatalf("got %d %s", a.StatusCode, a.text)
		}
		if s := l.end(a.Header.Get("Location")); s.State != "done" {
			t.Errorf("got %s (%s), want it to be sent: it was accepted", s.State, s.Reason)
		}
	})
}

func TestAnInstantBeyondTheClockOfTheQueueIsNotNow(t *testing.T) {
	bubble(t, nil, func(l *later) {
		for _, at := range []string{"9999-12-31T23:59:59Z", "2300-01-01T00:00:00Z"} {
			call := l.async("GET", "/api/y", "", "Heed-Not-Before", at)
			l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":1,"endpoint":"api","method":"GET","path":"/x","not_before":"`+at+`","expires":"`+at+`"}`)
			time.Sleep(time.Minute)
			if s := l.ask(call); len(l.sights()) != 0 || s.State != "waiting" {
				t.Errorf("not before %s: %d requests were sent, and the call is %s", at, len(l.sights()), s.State)
			}
		}
	})
}

func TestAnEnvelopeSaysNothingThatCannotBeSent(t *testing.T) {
	bubble(t, nil, func(l *later) {
		for name, text := range map[string]string{
			"a method with a space": `"endpoint":"api","method":"GET /x HTTP/1.1\r\nX: y","path":"/x"`,
			"a method with a NUL":   `"endpoint":"api","method":"GET\u0000","path":"/x"`,
			"CONNECT":               `"endpoint":"api","method":"CONNECT","path":"/x"`,
			"a long method":         `"endpoint":"api","method":"` + strings.Repeat("A", 5000) + `","path":"/x"`,
			"our own endpoint":      `"endpoint":"_heed","method":"POST","path":"/calls"`,
			"the root":              `"endpoint":"","method":"POST","path":"/calls"`,
			"dots":                  `"endpoint":"..","method":"POST","path":"/calls"`,
			"callback endpoint":     `"endpoint":"_callback","method":"POST","path":"/calls"`,
			"health":                `"endpoint":"healthz","method":"GET","path":"/"`,
			"a trace parent":        `"endpoint":"api","method":"GET","path":"/x","traceparent":"` + strings.Repeat(`\u0000`, 55) + `"`,
			"a key with a line":     `"endpoint":"api","method":"POST","path":"/x","idempotency_key":"a\r\nb"`,
			"a tenant with a NUL":   `"endpoint":"api","method":"GET","path":"/x","tenant":"a\u0000"`,
			"a path with a NUL":     `"endpoint":"api","method":"GET","path":"/x\u0000"`,
			"a coded NUL":           `"endpoint":"api","method":"GET","path":"/x%00"`,
		} {
			a := l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":1,`+text+`}`)
			if a.StatusCode < 400 || a.StatusCode > 499 {
				var sent string
				if a.StatusCode == 202 {
					s := l.end(a.Header.Get("Location"))
					sent = s.State + " " + s.Reason + fmt.Sprintf(" %q", s.Path)
				}
				t.Errorf("%s: got %d %s %s", name, a.StatusCode, a.text, sent)
			}
		}
	})
}

func TestARefusedRepeatLeavesNoCallbackBehind(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		for range 3 {
			l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async", "Idempotency-Key", "k1", "Heed-Callback", "https://hooks.test/h")
		}
		l.do(l.Gateway, "POST", "/api/x", "other", "Prefer", "respond-async", "Idempotency-Key", "k1", "Heed-Callback", "https://hooks.test/h")
		if n := l.watchmen(); n != 1 {
			t.Errorf("%d watchmen wait, want that of the one call", n)
		}
	})
}

func TestACallThatHasEndedLeavesNoCallbackBehind(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.end(l.async("POST", "/api/x", "b", "Heed-Callback", "https://hooks.test/h"))
		time.Sleep(time.Minute)
		var page listed
		if l.operate("GET", "/_heed/calls?endpoint=_callback&state=queued", "", &page); len(page.Calls)+l.watchmen() != 0 {
			t.Errorf("got %d callbacks that wait, want none", len(page.Calls))
		}
	})
}

func TestAKeyOfAnotherClientIsNoDuplicateAlsoWhenItsCallIsErased(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) {
		s.Clients = []Client{{Name: "a", Token: DigestOf(mask.Secret("ta"))}, {Name: "b", Token: DigestOf(mask.Secret("tb"))}}
	}, func(l *later) {
		send := func(token string) answered {
			return l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async", "Idempotency-Key", "k1", "Heed-Token", token)
		}
		a := send("ta")
		time.Sleep(time.Minute)
		if n, err := l.store.Purge(l.Context(), []string{l.id(a.Header.Get("Location"))}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		wantProblem(t, send("tb"), 422, "idempotency-key-reused")
		if again := send("ta"); again.StatusCode != 202 || again.Header.Get("Heed-Duplicate") != "true" {
			t.Errorf("the same client: got %d %s", again.StatusCode, again.text)
		}
	})
}

func TestACancelledCallIsNotReplayedBesideTheOneThatTookItsKey(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		first := l.async("POST", "/api/x", "b", "Idempotency-Key", "k1")
		l.do(l.Gateway, "DELETE", first, "")
		second := l.async("POST", "/api/x", "b", "Idempotency-Key", "k1")
		l.operate("POST", "/_heed/endpoints/api/resume", "", &endpointStanding{})
		l.end(second)
		wantProblem(t, l.operate("POST", first+"/replay", "", nil), 409, "call-state")
		l.operate("POST", "/_heed/calls/replay", `{"filter":{"states":["cancelled"]}}`, &done{})
		time.Sleep(time.Minute)
		if n := len(l.sights()); n != 1 {
			t.Errorf("the write was sent %d times, want once", n)
		}
	})
}

func TestAPathThatIsNoTextIsShownAsText(t *testing.T) {
	bubble(t, nil, func(l *later) {
		for _, p := range []string{"/api/%ff%fe", "/api/%0a%1b[31m", "/api/a%c3"} {
			a := l.do(l.Gateway, "GET", p, "", "Prefer", "respond-async")
			if a.StatusCode != 202 {
				continue
			}
			f, err := l.store.Get(l.Context(), l.id(a.Header.Get("Location")))
			if err != nil {
				t.Fatal(err)
			}
			if strings.ToValidUTF8(f.Template, "") != f.Template || strings.ContainsAny(f.Template, "\x00\n\x1b") {
				t.Errorf("%s: got template %q", p, f.Template)
			}
		}
	})
}

func TestAnEditCannotMakeACallThatCannotBeSent(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = answers(422, "no")
		at := l.async("POST", "/api/x", "b", "Idempotency-Key", "k1")
		l.end(at)
		for _, text := range []string{`{"idempotency_key":"a\r\nb"}`, `{"idempotency_key":"` + strings.Repeat("k", 300) + `"}`, `{"headers":{"x y":["1"]}}`,
			`{"headers":{"a":["b\u0000"]}}`, `{"path":"//evil.test/x"}`, `{"path":"/../x"}`, `{"headers":{"transfer-encoding":["chunked"]}}`, `{"headers":{"authorization":["Bearer x"]}}`, `{"path":"x"}`, `{"path":"/x\u0000"}`, `{"headers":{"Authorization":["Bearer x"]}}`, `{"headers":{"Content-Length":["3"]}}`, `{"headers":{"Transfer-Encoding":["chunked"]}}`,
			`{"callback":"http://127.0.0.1/x"}`} {
			if a := l.operate("PATCH", at, text, nil); a.StatusCode != 400 {
				t.Errorf("%s: got %d %s", text, a.StatusCode, a.text)
			}
		}
		l.operate("PATCH", at, `{"headers":{"heed-attempt":["1"],"x-a":["b"]}}`, &opened{})
		l.operate("POST", at+"/replay", "", &opened{})
		time.Sleep(time.Minute)
		if h := l.sights()[1].header; h.Get("Heed-Attempt") != "" || h["X-A"] == nil {
			t.Errorf("what was edited was sent as %v", h)
		}
	})
}

func TestAMoveTakesNoCallbacksAndNoWritesThatMayHaveBeenCarriedOut(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.set.Endpoints[0].Transport.Policy.Key.Header = "" // the provider honours no keys
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if r.Method == "POST" {
				return 0, nil, "" // cut off
			}
			return 422, nil, "no"
		}
		if s := l.end(l.async("POST", "/api/write", "b", "Heed-Retry", "off")); s.State != "unknown" {
			t.Fatalf("got %+v, want unknown", s)
		}
		l.end(l.async("GET", "/api/dead", ""))
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		l.async("GET", "/api/queued", "", "Heed-Callback", "https://hooks.test/h")
		a := l.operate("POST", "/_heed/calls/export", `{"why":"move"}`, nil)
		if strings.Count(a.text, "\n") != 2 || !strings.Contains(a.text, `"/dead"`) || !strings.Contains(a.text, `"/queued"`) {
			t.Errorf("by default: got\n%s\nwant the dead and the queued call", a.text)
		}
		a = l.operate("POST", "/_heed/calls/export", `{"why":"move","filter":{"states":["unknown"]}}`, nil)
		if left := a.Trailer.Get("Heed-Left-Unknown"); a.text != "" || left != "1" {
			t.Errorf("by its state alone: got %q left out and\n%s", left, a.text)
		}
		a = l.operate("POST", "/_heed/calls/export", `{"why":"move","filter":{"states":["unknown"]},"even_unknown":true}`, nil)
		if strings.Count(a.text, "\n") != 1 || !strings.Contains(a.text, `"/write"`) {
			t.Errorf("when it is asked for: got\n%s", a.text)
		}
	})
}

func TestACallOfALongTenantOfAClientCanBeMoved(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) {
		s.Clients = []Client{{Name: "shop", Token: DigestOf(mask.Secret("ta"))}}
	}, func(l *later) {
		l.api = answers(422, "no")
		at := l.do(l.Gateway, "POST", "/api/x", "b", "Prefer", "respond-async", "Heed-Token", "ta", "Heed-Tenant", strings.Repeat("t", 128)).Header.Get("Location")
		time.Sleep(time.Minute)
		text := l.operate("POST", "/_heed/calls/export", `{"why":"move"}`, nil).text
		if n, err := l.store.Purge(l.Context(), []string{l.id(at)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		var got imported
		if l.operate("POST", "/_heed/calls/import", text, &got); got.Accepted != 1 {
			t.Errorf("got %+v, want it to be taken in again", got)
		}
		if f, err := l.store.Get(l.Context(), l.id(at)); err != nil || f.Tenant != "shop/"+strings.Repeat("t", 128) {
			t.Errorf("got tenant %q, %v", f.Tenant, err)
		}
	})
}
