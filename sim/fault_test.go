package sim_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
)

// wire serves steps for one path over loopback and returns its URL.
func wire(t *testing.T, steps string) string {
	t.Helper()
	srv := httptest.NewServer(api(t, sim.World{Steps: "GET /v1/bibs: " + steps}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1/bibs?limit=4"
}

func TestAResetIsNoGoodEndAndACloseIsOne(t *testing.T) {
	url := wire(t, "reset, close")
	if _, _, err := get(t, url); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: got %v", err)
	}
	if _, _, err := get(t, url); !errors.Is(err, io.EOF) {
		t.Errorf("close: got %v", err)
	}
}

func TestACutEndsWhereItSays(t *testing.T) {
	resp, body, err := get(t, wire(t, "cut(at=17)"))
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(body) != 17 || resp.ContentLength <= 17 {
		t.Errorf("got %v, %d of %d bytes", err, len(body), resp.ContentLength)
	}
}

func TestACleanCutCountsRightAndDoesNotParse(t *testing.T) {
	resp, body, err := get(t, wire(t, "cut-clean"))
	if err != nil || resp.ContentLength != int64(len(body)) || json.Valid(body) {
		t.Errorf("got %v, %d of %d bytes: %s", err, len(body), resp.ContentLength, body)
	}
}

func TestAValidCutParsesAndLacksTheHalf(t *testing.T) {
	_, body, err := get(t, wire(t, "cut-valid"))
	var page struct{ Entries []any }
	if bad := json.Unmarshal(body, &page); err != nil || bad != nil || len(page.Entries) != 2 {
		t.Errorf("got %v %v, %d of 4 entries", err, bad, len(page.Entries))
	}
}

func TestAMalformedAnswerHasItsLengthAndDoesNotParse(t *testing.T) {
	_, whole, _ := get(t, wire(t, "ok"))
	resp, body, err := get(t, wire(t, "malformed"))
	if err != nil || resp.StatusCode != 200 || len(body) != len(whole) || json.Valid(body) {
		t.Errorf("got %v %d %s", err, resp.StatusCode, body)
	}
}

func TestAWrongTypeIsNamed(t *testing.T) {
	resp, body, err := get(t, wire(t, "wrong-type(application/xml; charset=utf-8)"))
	if err != nil || resp.Header.Get("Content-Type") != "application/xml; charset=utf-8" || !json.Valid(body) {
		t.Errorf("got %v %v", err, resp.Header)
	}
}

func TestARedirectLeadsToAnotherHost(t *testing.T) {
	w := ask(api(t, sim.World{Steps: "GET /health: redirect(https://login.example.org/in)"}), "GET", "/health", "")
	if got := w.Header().Get("Location"); w.Code != 307 || got != "https://login.example.org/in" {
		t.Errorf("got %d %q", w.Code, got)
	}
}

func TestAStallComesAfterTheHeaderAndTheFirstBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "GET /health: stall(at=3, for=5s)"})
		in, out := io.Pipe()
		w := &piped{ResponseRecorder: httptest.NewRecorder(), out: out}
		go func() {
			a.ServeHTTP(w, httptest.NewRequest("GET", "/health", nil))
			out.Close()
		}()
		begin := time.Now()
		first := make([]byte, 3)
		if _, err := io.ReadFull(in, first); err != nil || time.Since(begin) != 0 {
			t.Errorf("first bytes: %v after %v", err, time.Since(begin))
		}
		rest, err := io.ReadAll(in)
		if err != nil || string(first)+string(rest) != `{"status":"ok"}`+"\n" || time.Since(begin) != 5*time.Second {
			t.Errorf("got %s%s after %v, %v", first, rest, time.Since(begin), err)
		}
	})
}

// piped hands the body on as it is written.
type piped struct {
	*httptest.ResponseRecorder
	out io.Writer
}

func (p *piped) Write(b []byte) (int, error) { return p.out.Write(b) }

func TestADripTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "GET /health: drip(bytes=4, every=250ms)"})
		begin := time.Now()
		w := ask(a, "GET", "/health", "")
		if got, want := time.Since(begin), 3*250*time.Millisecond; got != want || w.Body.Len() != 16 {
			t.Errorf("%d bytes took %v, want %v", w.Body.Len(), got, want)
		}
	})
}

func TestALognormalLatencyHasItsMedian(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 400
		a := api(t, sim.World{Steps: "GET /health: slow(median=100ms, p99=1s) x400"})
		below, long := 0, 0
		for range n {
			begin := time.Now()
			ask(a, "GET", "/health", "")
			switch d := time.Since(begin); {
			case d < 100*time.Millisecond:
				below++
			case d > time.Second:
				long++
			}
		}
		// The draws are the same in every run: 400 of a fair coin stay within three
		// deviations of 200, and about 4 are above the 99th percentile.
		if below < 170 || below > 230 || long == 0 || long > 12 {
			t.Errorf("%d of %d below the median, %d above the 99th percentile", below, n, long)
		}
	})
}

func TestAGoldenExchangeIsServed(t *testing.T) {
	w := ask(api(t, sim.World{Steps: "GET /health: golden(an edge that limits)"}), "GET", "/health", "")
	if w.Code != 429 || w.Body.String() != "error code: 1015" || w.Header().Get("Content-Type") != "text/plain" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestAGoldenExchangeThatIsNotThereIsToldWithThoseThatAre(t *testing.T) {
	_, err := sim.New(sim.World{Steps: "GET /health: ok, golden(nothing of the kind)"})
	bad, ok := errors.AsType[*sim.Error](err)
	if !ok || bad.Problems[0].Line != 1 || bad.Problems[0].Column != 18 || !strings.Contains(bad.Problems[0].Remedy, "slack") {
		t.Errorf("got %v", err)
	}
}

func TestAStepIsNamedByItsOperation(t *testing.T) {
	p := sim.Generic()
	p.Operations[1].Name = "bibs.get"
	a := api(t, sim.World{Packs: []sim.Pack{p}, Steps: "bibs.get: 503"})
	if diff := cmp.Diff(statuses(a, "/v1/bibs/1", 2), []int{503, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestAnOperationThatIsNotThereIsAnErrorWithItsPlace(t *testing.T) {
	_, err := sim.New(sim.World{Steps: "\n  bibs.gte: 503"})
	bad, ok := errors.AsType[*sim.Error](err)
	if !ok || bad.Problems[0].Line != 2 || bad.Problems[0].Column != 3 {
		t.Errorf("got %v", err)
	}
}

func TestACommitThatIsHiddenIsDone(t *testing.T) {
	for step, want := range map[string]int{"commit-then-504": 504, "commit-then-500": 500} {
		a := api(t, sim.World{Steps: "POST /v1/charges: " + step})
		w := ask(a, "POST", "/v1/charges", coffee)
		if w.Code != want || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || a.Effects().Charges != 1 {
			t.Errorf("%s: got %d %v, %+v", step, w.Code, w.Header(), a.Effects())
		}
	}
}

func TestASecondRequestMeetsItsKeyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "POST /v1/charges: slow(for=10s), ok"})
		post := func() int { return ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k").Code }
		first := make(chan int)
		go func() { first <- post() }()
		synctest.Wait()
		got := []int{post(), <-first, post()}
		if diff := cmp.Diff(got, []int{409, 201, 201}); diff != "" || a.Effects().Charges != 1 {
			t.Error(diff, a.Effects())
		}
	})
}

func TestACommitThenHangAnswersNeverAndHasCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := api(t, sim.World{Steps: "POST /v1/charges: commit-then-hang(for=30s)"})
		begin := time.Now()
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the connection was not ended")
				}
			}()
			ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k")
		}()
		if time.Since(begin) != 30*time.Second || a.Effects().Charges != 1 {
			t.Errorf("after %v: %+v", time.Since(begin), a.Effects())
		}
		if w := ask(a, "POST", "/v1/charges", coffee, "Idempotency-Key: k"); w.Header().Get("Idempotent-Replayed") != "true" {
			t.Errorf("got %d %v", w.Code, w.Header())
		}
	})
}

func TestEveryFaultComesOnAKeptConnectionToo(t *testing.T) {
	srv := httptest.NewServer(api(t, sim.World{Steps: "GET /v1/bibs: ok, malformed, cut-valid, empty, html, stale, 503, ok, reset"}))
	defer srv.Close()
	c := srv.Client()
	c.Transport.(*http.Transport).MaxConnsPerHost = 1
	conns := map[string]bool{}
	for range 8 {
		resp, err := c.Get(srv.URL + "/v1/bibs")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	r, _ := http.NewRequest("POST", srv.URL+"/v1/bibs", http.NoBody)
	r.Method = "GET"
	r.Body = io.NopCloser(strings.NewReader("x")) // a body that cannot be had again: net/http does not resend
	if _, err := c.Do(r); err == nil {
		t.Error("reset: no error")
	}
	var j sim.Journal
	resp, err := c.Get(srv.URL + "/_sim/journal")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&j); err != nil {
		t.Fatal(err)
	}
	for _, e := range j.Entries {
		conns[e.Connection] = true
	}
	if len(conns) != 1 || len(j.Entries) != 9 {
		t.Errorf("%d requests came over %d connections", len(j.Entries), len(conns))
	}
}

func TestWhatCannotBeCutIsToldInTheJournal(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /v1/bibs/*: cut-valid, cut(at=9999), cut-clean(at=9999), truncate"})
	whole := ask(a, "GET", "/t/other/v1/bibs/1", "").Body.Len()
	if whole == 0 {
		t.Fatal("there is no answer")
	}
	statuses(a, "/v1/bibs/1", 4)
	var got []string
	for _, e := range a.Journal().Entries {
		got = append(got, e.Note)
	}
	const sent = "there was nothing to leave out: the answer was sent whole"
	if diff := cmp.Diff(got, []string{"", sent, sent, ""}); diff != "" {
		t.Error(diff)
	}
}
