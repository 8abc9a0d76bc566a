package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// broken leaves n dead writes behind: the API refuses what does not say "good".
func (l *later) broken(n int) (at []string) {
	l.Helper()
	l.api = func(r *http.Request, _ int) (int, http.Header, string) {
		if l.lastBody() == "good" {
			return 200, nil, "taken"
		}
		return 422, nil, "no such account"
	}
	for range n {
		at = append(at, l.async("POST", "/api/pay/41ab99", "bad", "Authorization", "Bearer credential-1", "X-Note", "personal-7"))
		l.end(at[len(at)-1])
	}
	return at
}

func (l *later) lastBody() string {
	s := l.sights()
	return s[len(s)-1].body
}

func TestOperatorsListCallsByWhatIsKnownOfThem(t *testing.T) {
	bubble(t, nil, func(l *later) {
		dead := l.broken(3)
		l.api = answers(200, "x")
		l.end(l.async("GET", "/api/y", ""))
		var page listed
		l.operate("GET", "/_heed/calls?state=dead&endpoint=api&limit=2", "", &page)
		if len(page.Calls) != 2 || page.Next == "" {
			t.Fatalf("got %d calls and the cursor %q, want 2 and more", len(page.Calls), page.Next)
		}
		first := page.Calls[0]
		if "/_heed/calls/"+first.ID != dead[0] || first.Note == nil || first.Note.Status != 422 || first.Note.Replay != "heed calls replay "+first.ID || first.Note.Do == "" {
			t.Errorf("got %+v with note %+v", first, first.Note)
		}
		var last listed
		l.operate("GET", "/_heed/calls?state=dead&after="+page.Next, "", &last)
		if len(last.Calls) != 1 || last.Next != "" {
			t.Errorf("got %d calls on the last page and the cursor %q", len(last.Calls), last.Next)
		}
		wantProblem(t, l.operate("GET", "/_heed/calls?colour=red", "", nil), 400, "bad-request")
		wantProblem(t, l.operate("GET", "/_heed/calls?state=asleep", "", nil), 400, "bad-request")
	})
}

func TestACallIsShownMaskedAndRevealedOnlyForAReasonThatIsWrittenDown(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.broken(1)[0]
		a := l.operate("GET", at, "", nil)
		for _, secret := range []string{"personal-7", "bad\"", "41ab99", "no such account"} {
			if strings.Contains(a.text, secret) {
				t.Errorf("%q is shown: %s", secret, a.text)
			}
		}
		wantProblem(t, l.operate("POST", at+"/reveal", "{}", nil), 400, "bad-request")
		var r revealed
		l.operate("POST", at+"/reveal", `{"why":"ticket 12"}`, &r)
		if string(r.Envelope.Body) != "bad" || r.Envelope.Path != "/pay/41ab99" || r.Envelope.Header.Get("X-Note") != "personal-7" || string(r.Answer.Body) != "no such account" {
			t.Errorf("got %+v", r)
		}
		if r.Envelope.Header.Get("Authorization") != "" {
			t.Error("a credential of the caller was kept")
		}
		if !strings.Contains(l.logged(), `"kind":"audit","action":"reveal"`) || !strings.Contains(l.logged(), "ticket 12") {
			t.Errorf("the audit log says nothing: %s", l.logged())
		}
	})
}

func TestTheBeginningOfAnIdNamesACallThoughItsWatchmanBeginsAlike(t *testing.T) {
	bubble(t, nil, func(l *later) {
		now := time.Now()
		c := queue.Call{Facts: queue.Facts{ID: "job-4711", Endpoint: "api", Gate: MainGate, Method: "GET", Template: "/x", NotBefore: now.Add(time.Hour)},
			Request: queue.Request{Path: "/x"}}
		end := c
		end.ID += "~end-1"
		if _, err := l.store.Enqueue(l.Context(), now, []queue.Call{c, watchman(&c, now), end}); err != nil {
			t.Fatal(err)
		}
		var got opened
		l.operate("GET", "/_heed/calls/job-", "", &got)
		if got.ID != "job-4711" {
			t.Errorf("got %q, want the call", got.ID)
		}
		l.operate("GET", "/_heed/calls/job-4711~e", "", &got)
		if got.ID != "job-4711~end-1" {
			t.Errorf("got %q, want the callback of its end", got.ID)
		}
		if a := l.do(l.Gateway, "GET", "/_heed/calls/job-", ""); a.StatusCode != 404 {
			t.Errorf("the data port: got %d, want 404: there the whole id is what lets a caller in", a.StatusCode)
		}
	})
}

func TestAQueuedCallThatWaitsIsNamedAsTheQueueNamesIt(t *testing.T) {
	soon := func(_ *Settings, p *policy.Policy) {
		p.Backoff.Base, p.Backoff.Cap = 800*time.Millisecond, 800*time.Millisecond
	}
	bubble(t, soon, func(l *later) {
		l.api = func(_ *http.Request, n int) (int, http.Header, string) {
			if n == 1 {
				return 503, nil, ""
			}
			return 200, nil, "taken"
		}
		id := strings.TrimPrefix(l.async("GET", "/api/x", "", "Heed-Correlation-Id", "job-7"), "/_heed/calls/")
		synctest.Wait()
		var got struct{ Waiting []heed.Waiter }
		l.operate("GET", "/_heed/waiting", "", &got)
		if len(got.Waiting) != 1 || got.Waiting[0].QueueID != id || got.Waiting[0].CorrelationID != "job-7" {
			t.Errorf("got %+v, want the call %s of job-7", got.Waiting, id)
		}
		l.end("/_heed/calls/" + id)
	})
}

func TestADeadCallIsEditedAndReplayed(t *testing.T) {
	bubble(t, nil, func(l *later) {
		at := l.broken(1)[0]
		var o opened
		l.operate("PATCH", at, `{"body":"Z29vZA=="}`, &o)
		if o.Revision != 2 || o.State != "dead" {
			t.Errorf("got revision %d, %s", o.Revision, o.State)
		}
		l.operate("POST", at+"/replay", "", &o)
		if o.State == "dead" { // how far a worker has come with it by now is chance
			t.Errorf("got %s after the replay", o.State)
		}
		if s := l.end(at); s.State != "done" || s.LastStatus != 200 {
			t.Errorf("got %+v", s)
		}
		wantProblem(t, l.operate("POST", at+"/replay", "", nil), 409, "call-state")
		wantProblem(t, l.operate("PATCH", at, `{"body":"Z29vZA=="}`, nil), 409, "call-state")
	})
}

func TestAnEditThatCouldNotBeSentIsRefused(t *testing.T) {
	change := func(_ *Settings, p *policy.Policy) { p.Allow = []policy.Allow{{Path: "/base/pay/**"}} }
	bubble(t, change, func(l *later) {
		at := l.broken(1)[0]
		for _, edit := range []string{`{"path":"/../x"}`, `{"path":"/elsewhere"}`, `{"headers":{"X-A":["b\r\nc"]}}`, `{"callback":"https://a.test/"}`, `{"method":"GET"}`} {
			wantProblem(t, l.operate("PATCH", at, edit, nil), 400, "bad-request")
		}
	})
}

func TestManyAreReplayedAtARateAfterADryRun(t *testing.T) {
	bubble(t, nil, func(l *later) {
		dead := l.broken(4)
		l.api = answers(200, "x")
		var out done
		l.operate("POST", "/_heed/calls/replay", `{"filter":{"endpoint":"api","reason":"permanent"},"rate":"1/min","dry_run":true}`, &out)
		if out.Count != 4 || l.ask(dead[0]).State != "dead" {
			t.Errorf("the dry run found %d and left the first one %s", out.Count, l.ask(dead[0]).State)
		}
		n := len(l.sights())
		l.operate("POST", "/_heed/calls/replay", `{"filter":{"endpoint":"api","reason":"permanent"},"rate":"1/min"}`, &out)
		for _, at := range dead {
			l.end(at)
		}
		sent := l.sights()[n:]
		for i := 1; i < len(sent); i++ {
			if d := sent[i].at.Sub(sent[i-1].at); d < 59*time.Second || d > 61*time.Second {
				t.Errorf("replay %d came %v after the one before, want a minute", i, d)
			}
		}
		wantProblem(t, l.operate("POST", "/_heed/calls/replay", `{"rate":"fast"}`, nil), 400, "bad-request")
	})
}

// doubtful leaves a write behind of which nobody knows whether it was carried
// out: the API cut the connection, and honours no keys.
func doubtful(t *testing.T, run func(l *later, at string)) {
	bubble(t, func(_ *Settings, p *policy.Policy) { p.Key.Header = "" }, func(l *later) {
		l.api = answers(0, "")
		at := l.async("POST", "/api/x", "b")
		if s := l.end(at); s.State != "unknown" {
			t.Fatalf("got %+v, want unknown", s)
		}
		l.api = answers(200, "")
		run(l, at)
	})
}

func TestAnUnknownWriteIsReplayedOnlyWhenItIsAskedFor(t *testing.T) {
	doubtful(t, func(l *later, at string) {
		named := `{"filter":{"ids":["` + strings.TrimPrefix(at, "/_heed/calls/") + `"]}`
		for _, order := range []string{`{}`, `{"filter":{"states":["unknown"]}}`, `{"filter":{},"dry_run":true}`, named + `}`, named + `,"dry_run":true}`} {
			var out done
			l.operate("POST", "/_heed/calls/replay", order, &out)
			if s := l.ask(at); out.Count != 0 || out.LeftUnknown != 1 || s.State != "unknown" {
				t.Errorf("%s: replayed %d, left out %d, and it is %s; want 0, 1, unknown", order, out.Count, out.LeftUnknown, s.State)
			}
		}
		var out done
		l.operate("POST", "/_heed/calls/replay", `{"even_unknown":true}`, &out)
		if s := l.end(at); out.Count != 1 || out.LeftUnknown != 0 || s.State != "done" {
			t.Errorf("replayed %d, left out %d, and it is %s; want 1, 0, done", out.Count, out.LeftUnknown, s.State)
		}
	})
}

func TestNamedUnknownWritesAreReplayedWhenTheyAreAskedFor(t *testing.T) {
	doubtful(t, func(l *later, at string) {
		var out done
		l.operate("POST", "/_heed/calls/replay", `{"filter":{"ids":["`+strings.TrimPrefix(at, "/_heed/calls/")+`"]},"even_unknown":true}`, &out)
		if s := l.end(at); out.Count != 1 || out.LeftUnknown != 0 || s.State != "done" {
			t.Errorf("replayed %d, left out %d, and it is %s; want 1, 0, done", out.Count, out.LeftUnknown, s.State)
		}
	})
}

func TestOneUnknownWriteIsNotReplayedWithoutAWord(t *testing.T) {
	doubtful(t, func(l *later, at string) {
		p := wantProblem(t, l.operate("POST", at+"/replay", "", nil), 409, "call-unknown")
		if !strings.Contains(p.Detail, "may have been carried out, and would be done twice") || !strings.Contains(p.Detail, `{"even_unknown": true}`) {
			t.Errorf("got the detail %q", p.Detail)
		}
		if s := l.ask(at); s.State != "unknown" {
			t.Errorf("after that it is %s", s.State)
		}
		l.operate("POST", at+"/replay", `{"even_unknown":true}`, &opened{})
		if s := l.end(at); s.State != "done" {
			t.Errorf("asked for it is %s", s.State)
		}
	})
}

func TestOperatorsCancelAndPurgeMany(t *testing.T) {
	bubble(t, nil, func(l *later) {
		var at []string
		for range 3 {
			at = append(at, l.async("GET", "/api/x", "", "Heed-Not-Before", "3600"))
		}
		var out done
		if l.operate("POST", "/_heed/calls/cancel", `{"filter":{"endpoint":"api"},"dry_run":true}`, &out); out.Count != 3 || l.ask(at[0]).State != "waiting" {
			t.Errorf("the dry run found %d and left the first one %s", out.Count, l.ask(at[0]).State)
		}
		l.operate("POST", "/_heed/calls/cancel", `{"filter":{"endpoint":"api"}}`, &out)
		if l.ask(at[2]).State != "cancelled" {
			t.Errorf("got %s", l.ask(at[2]).State)
		}
		l.operate("POST", "/_heed/calls/purge", `{"filter":{"ids":["`+strings.TrimPrefix(at[0], "/_heed/calls/")+`"]}}`, &out)
		wantProblem(t, l.do(l.Gateway, "GET", at[0], ""), 404, "unknown-call")
		if out.Count != 1 || l.ask(at[1]).State != "cancelled" {
			t.Errorf("purged %d", out.Count)
		}
		var one opened
		kept := l.async("GET", "/api/x", "", "Heed-Not-Before", "3600")
		if l.operate("POST", kept+"/cancel", "", &one); one.State != "cancelled" {
			t.Errorf("got %s", one.State)
		}
	})
}

func TestWhatIsExportedIsImportedAsTheSame(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.async("PUT", "/api/a?q=1", "one", "X-Own", "1", "Heed-Not-Before", "3600", "Heed-Tenant", "t", "Heed-Priority", "2", "Idempotency-Key", "k-1")
		l.async("PUT", "/api/b", "two", "Heed-Not-Before", "3600", "Heed-Retry", "off")
		wantProblem(t, l.operate("POST", "/_heed/calls/export", `{}`, nil), 400, "bad-request")
		export := func() (lines []queue.Envelope, text string) {
			a := l.operate("POST", "/_heed/calls/export", `{"why":"move"}`, nil)
			for line := range strings.Lines(a.text) {
				var e queue.Envelope
				if err := json.Unmarshal([]byte(line), &e); err != nil {
					t.Fatal(err)
				}
				lines = append(lines, e)
			}
			return lines, a.text
		}
		before, text := export()
		var out done
		l.operate("POST", "/_heed/calls/cancel", `{}`, &out)
		l.operate("POST", "/_heed/calls/purge", `{}`, &out)
		var in imported
		l.operate("POST", "/_heed/calls/import", text+"not json\n"+`{"heed":1,"endpoint":"gone","method":"GET","path":"/"}`, &in)
		if in.Accepted != 2 || len(in.Refused) != 2 || in.Refused[0].Line != 3 {
			t.Errorf("got %+v", in)
		}
		after, _ := export()
		if diff := cmp.Diff(after, before); diff != "" {
			t.Errorf("after (-got +want):\n%s", diff)
		}
		if l.operate("POST", "/_heed/calls/import", text, &in); in.Accepted != 0 || in.Duplicates != 2 {
			t.Errorf("the second import: got %+v", in)
		}
	})
}

func TestTheQueueIsToldAsAWhole(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.broken(2)
		l.async("GET", "/api/x", "", "Heed-Not-Before", "3600")
		var q shownQueue
		l.operate("GET", "/_heed/queue", "", &q)
		want := []shownCount{{"api", "queued", "", 1}, {"api", "dead", "permanent", 2}}
		if diff := cmp.Diff(q.Groups, want); diff != "" || q.Depth != 1 {
			t.Errorf("depth %d, counts (-got +want):\n%s", q.Depth, diff)
		}
	})
}
