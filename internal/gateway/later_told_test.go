package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
)

func TestACancellationThatComesTooLateIsNotToBeRepeated(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("GET", "/api/x", "")
		l.end(at)
		a := l.do(l.Gateway, "DELETE", at, "")
		if a.StatusCode != http.StatusConflict {
			t.Fatalf("got %d, want 409: %s", a.StatusCode, a.text)
		}
		if after := a.Header.Get("Retry-After"); after != "" || strings.Contains(a.text, "retry_at") {
			t.Errorf("got Retry-After %q and %s, want no word of trying again", after, a.text)
		}
	})
}

func TestACallThatWaitsForAPauseThatAnotherWasToldSaysSo(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if strings.HasSuffix(r.URL.Path, "/told") {
				return 429, http.Header{"Retry-After": {"60"}}, ""
			}
			time.Sleep(time.Second) // the other one is told meanwhile
			return 429, nil, ""
		}
		plain := l.async("GET", "/api/plain", "")
		time.Sleep(100 * time.Millisecond) // it is under way
		l.async("GET", "/api/told", "")
		time.Sleep(10 * time.Second)
		if s := l.ask(plain); s.Attempts != 1 || s.WaitSource != "retry_after" {
			t.Errorf("got %d attempt(s) and then a wait for %q, want 1 and retry_after", s.Attempts, s.WaitSource)
		}
	})
}

func TestAnImportUnderTheKeyOfAnErasedCallIsNotKnownAlready(t *testing.T) {
	bubble(t, nil, func(l *later) {
		const envelope = `{"heed":1,"id":"c1","endpoint":"api","method":"POST","path":"/x","idempotency_key":"k1"}`
		var got imported
		l.operate("POST", "/_heed/calls/import", envelope, &got)
		l.end(callsPath + "/c1")
		if n, err := l.store.Purge(l.Context(), []string{"c1"}); n != 1 || err != nil {
			t.Fatalf("purge: got %d, %v", n, err)
		}
		got = imported{}
		l.operate("POST", "/_heed/calls/import", strings.Replace(envelope, "c1", "c2", 1), &got)
		if diff := cmp.Diff(got, imported{Erased: 1, Refused: []badImport{}}); diff != "" {
			t.Errorf("got (-got +want):\n%s", diff)
		}
	})
}

func TestACallbackWhoseHostIsNoLongerListedSaysWhereItIsListed(t *testing.T) {
	c := queue.Call{Facts: queue.Facts{ID: "c1-end", Endpoint: callbackEndpoint}}
	o := (&ended{reason: heed.NotAllowed, why: "its host is not listed"}).outcome(time.Now(), &c)
	if o.Note == nil || !strings.Contains(o.Note.Do, "queue.callbacks.hosts") || strings.Contains(o.Note.Do, "endpoint") {
		t.Errorf("got %+v, want advice about queue.callbacks.hosts", o.Note)
	}
}

func TestWhatIsWrongWithAnEnvelopeIsSaidInFull(t *testing.T) {
	bubble(t, nil, func(l *later) {
		var out imported
		l.operate("POST", "/_heed/calls/import", `{"heed":1,"metod":"GET","endpoint":"api","path":"/"}`, &out)
		want := []badImport{{1, `unknown field "metod": remove it or correct its name`}}
		if diff := cmp.Diff(out.Refused, want); diff != "" {
			t.Errorf("refused (-got +want):\n%s", diff)
		}
	})
}

func TestWhatHeedWroteItselfIsNotMasked(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.async("GET", "/api/x", "", "Heed-Retry", "off", "X-Own", "theirs", "Heed-Not-Before", "3600")
		var c opened
		l.operate("GET", "/_heed/calls/"+l.id(at), "", &c)
		if h := c.Request.Header; h.Get("Heed-Retry") != "off" || h.Get("X-Own") == "theirs" {
			t.Errorf("got %v", h)
		}
	})
}

func TestADrainWithoutAnEndIsTakenDownWithoutOne(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/drain", "", &endpointStanding{})
		for line := range strings.Lines(l.logged()) {
			var audit map[string]any
			if err := json.Unmarshal([]byte(line), &audit); err != nil {
				t.Fatal(err)
			}
			if _, has := audit["until"]; audit["action"] == "draining" && has {
				t.Errorf("got %s", line)
			}
		}
	})
}
