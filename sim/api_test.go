package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// api makes an API or ends the test.
func api(t testing.TB, w sim.World) *sim.API {
	t.Helper()
	a, err := sim.New(w)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask sends one request straight to the handler. Header fields are "Name: value".
func ask(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// statuses asks for path n times.
func statuses(h http.Handler, path string, n int) []int {
	var got []int
	for range n {
		got = append(got, ask(h, "GET", path, "").Code)
	}
	return got
}

func TestStepsComeFirstAndNeverAgain(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /v1/bibs/*: 503 x2, 429(after=1s), ok"})
	want := []int{503, 503, 429, 200, 200, 200}
	if diff := cmp.Diff(want, statuses(a, "/v1/bibs/7", 6)); diff != "" {
		t.Error(diff)
	}
}

func TestAStarSharesItsStepsAndABraceDoesNot(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /v1/bibs/*: 503\nGET /v1/charges/{id}: 500"})
	var got []int
	for _, path := range []string{"/v1/bibs/1", "/v1/bibs/2", "/v1/charges/ch_1", "/v1/charges/ch_2", "/v1/charges/ch_1"} {
		got = append(got, ask(a, "GET", path, "").Code)
	}
	if diff := cmp.Diff([]int{503, 200, 500, 500, 404}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryCallerGoesThroughTheStepsAlone(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /health: 503"})
	var got []int
	for _, f := range []string{"X-Api-Key: a", "X-Api-Key: b", "Authorization: Bearer c", "X-Api-Key: a"} {
		got = append(got, ask(a, "GET", "/health", "", f).Code)
	}
	if diff := cmp.Diff([]int{503, 503, 503, 200}, got); diff != "" {
		t.Error(diff)
	}
}

func Test64ParallelClientsClaimEveryStepOnce(t *testing.T) {
	srv := httptest.NewServer(api(t, sim.World{Steps: "GET /v1/bibs/*: 500 x10, 502 x20, 429(after=0s) x30, reset x4, ok"}))
	defer srv.Close()
	var (
		mu  sync.Mutex
		got = map[int]int{}
		wg  sync.WaitGroup
	)
	for i := range 64 {
		wg.Go(func() {
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for j := range 2 {
				status := 0
				if resp, err := c.Get(fmt.Sprintf("%s/v1/bibs/%d", srv.URL, 2*i+j+1)); err == nil {
					status = resp.StatusCode
					resp.Body.Close()
				}
				mu.Lock()
				got[status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{500: 10, 502: 20, 429: 30, 0: 4, 200: 64}, got); diff != "" {
		t.Error(diff)
	}
}

// story is a journal without what differs between runs, in an order that does not.
func story(j sim.Journal) []string {
	var out []string
	for _, e := range j.Entries {
		out = append(out, fmt.Sprintf("%s %s %s #%d %s %d %d", e.Caller, e.Method, e.Path, e.Attempt, e.Step, e.Status, e.BytesOut))
	}
	slices.Sort(out)
	return out
}

func TestSameSeedSameWorldUnderParallelClients(t *testing.T) {
	world := sim.World{
		Seed: 42, FailureRate: 0.3, Steps: "GET /v1/bibs/{id}: ok, 503\nPOST /v1/charges: commit-then-504",
		Limits: []rate.Limit{{Name: "calls", Kind: rate.FixedWindow, Capacity: 4, Window: time.Hour}},
		Clock:  sim.Clock{Stepped: true, Start: noon},
	}
	run := func(w sim.World) []string {
		a := api(t, w)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				key := fmt.Sprintf("X-Api-Key: %d", i)
				for range 2 {
					ask(a, "GET", "/v1/bibs/1", "", key)
					ask(a, "POST", "/v1/charges", coffee, key)
				}
				ask(a, "GET", "/v1/bibs/2", "", key)
			})
		}
		wg.Wait()
		return story(a.Journal())
	}
	first := run(world)
	for range 200 {
		if again := run(world); !slices.Equal(first, again) {
			t.Fatal(cmp.Diff(first, again))
		}
	}
	world.Seed++
	if slices.Equal(first, run(world)) {
		t.Error("another seed made the same world")
	}
}

func TestAnUnknownOperationIsToldWhatExists(t *testing.T) {
	w := ask(api(t, sim.World{}), "GET", "/v1/nothing", "")
	var p struct{ Operations, Simulator []string }
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	if w.Code != 404 || !slices.Contains(p.Operations, "GET /v1/bibs/{id}") || !slices.Contains(p.Simulator, "GET /_sim/journal") {
		t.Errorf("got %d %v %v", w.Code, p.Operations, p.Simulator)
	}
}

func TestAnotherMethodIsToldWhichIsTaken(t *testing.T) {
	w := ask(api(t, sim.World{}), "DELETE", "/v1/bibs/1", "")
	if w.Code != 405 || w.Header().Get("Allow") != "GET, PUT" {
		t.Errorf("got %d, Allow %q", w.Code, w.Header().Get("Allow"))
	}
}

func TestWhatIsPutIsFound(t *testing.T) {
	a := api(t, sim.World{Records: 3})
	if w := ask(a, "PUT", "/v1/bibs/9", `{"title":"New","author":"X"}`); w.Code != 201 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if w := ask(a, "PUT", "/v1/bibs/2", `{"title":"Changed","author":"X"}`); w.Code != 200 {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if got, want := ask(a, "GET", "/v1/bibs/9", "").Body.String(), `{"id":9,"title":"New","author":"X"}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var page struct {
		Total   int
		Entries []struct {
			ID    int
			Title string
		}
	}
	if err := json.Unmarshal(ask(a, "GET", "/v1/bibs?offset=1&limit=5", "").Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	if page.Total != 4 || len(page.Entries) != 3 || page.Entries[0].Title != "Changed" || page.Entries[2].ID != 9 {
		t.Errorf("got %+v", page)
	}
}

func TestABadRequestIsAClear400AndChangesNothing(t *testing.T) {
	a := api(t, sim.World{Records: 3})
	for _, r := range [][3]string{
		{"PUT", "/v1/bibs/x", `{"title":"T"}`},
		{"PUT", "/v1/bibs/-1", `{"title":"T"}`},
		{"PUT", "/v1/bibs/1", `{`},
		{"PUT", "/v1/bibs/1", `{"title":""}`},
		{"GET", "/v1/bibs?limit=-1", ""},
		{"GET", "/v1/bibs?limit=100000", ""},
		{"GET", "/v1/bibs?offset=1e9", ""},
		{"POST", "/v1/charges", "amount=1"},
		{"POST", "/v1/charges", `{"amount":-5,"currency":"eur"}`},
	} {
		if w := ask(a, r[0], r[1], r[2]); w.Code != 400 {
			t.Errorf("%v: got %d %s", r, w.Code, w.Body)
		}
	}
	if e := a.Effects(); !cmp.Equal(e, sim.Effects{}) {
		t.Errorf("got %+v", e)
	}
}

func TestATooLargeBodyIsRefused(t *testing.T) {
	a := api(t, sim.World{Steps: "POST /v1/charges: 503"})
	if w := ask(a, "POST", "/v1/charges", strings.Repeat("x", 2<<20)); w.Code != 413 {
		t.Errorf("got %d", w.Code)
	}
}

func TestHeadHasTheHeaderOfGet(t *testing.T) {
	srv := httptest.NewServer(api(t, sim.World{}))
	defer srv.Close()
	resp, err := http.Head(srv.URL + "/v1/bibs/1")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || resp.ContentLength <= 0 {
		t.Errorf("got %d, length %d", resp.StatusCode, resp.ContentLength)
	}
}

func TestTheDemoFailsTwiceThenTellsHowOftenItWasAsked(t *testing.T) {
	a := sim.Demo()
	for _, path := range []string{"/demo/hello", "/demo", "/flaky", "/flaky/a/b"} {
		if diff := cmp.Diff([]int{503, 429}, statuses(a, path, 2)); diff != "" {
			t.Fatal(path, diff)
		}
		w := ask(a, "GET", path, "")
		var told struct {
			Path  string
			Asked int
		}
		if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil {
			t.Fatal(err)
		}
		if w.Code != 200 || told.Path != path || told.Asked != 3 {
			t.Errorf("got %d %+v", w.Code, told)
		}
	}
}

func TestTheDemosThrottleAsksForOneSecond(t *testing.T) {
	a := sim.Demo()
	ask(a, "GET", "/demo/x", "")
	if got := ask(a, "GET", "/demo/x", "").Header().Get("Retry-After"); got != "1" {
		t.Errorf("got %q", got)
	}
}

func TestABadWorldSaysWhat(t *testing.T) {
	for want, w := range map[string]sim.World{
		"rate":            {Rate: -1},
		"burst":           {Burst: -1},
		"penalty":         {Rate: 1, Penalty: -1},
		"without a rate":  {Penalty: 1},
		"maximum penalty": {Rate: 1, PenaltyMax: 1 << 62},
		"failure rate":    {FailureRate: 2},
		"records":         {Records: -1},
		"column 12":       {Steps: "GET /health ok"},
	} {
		_, err := sim.New(w)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want something about %q", err, want)
		}
	}
}

// get asks over a connection of its own: on a used one net/http would repeat
// a GET that got no answer.
func get(t *testing.T, url string) (*http.Response, []byte, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get(url)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func TestFaultsOnTheWire(t *testing.T) {
	a := api(t, sim.World{Steps: "GET /v1/bibs/1: reset, truncate, empty, html, envelope, stale(age=90s), hang(for=1ms), 503(date=2s)"})
	srv := httptest.NewServer(a)
	defer srv.Close()
	url := srv.URL + "/v1/bibs/1"

	if _, _, err := get(t, url); err == nil {
		t.Error("reset: no error")
	}
	resp, body, err := get(t, url)
	if !errors.Is(err, io.ErrUnexpectedEOF) || resp.ContentLength != int64(2*len(body)) && resp.ContentLength != int64(2*len(body)+1) {
		t.Errorf("truncate: got %v, %d bytes", err, len(body))
	}
	if resp, body, err = get(t, url); err != nil || resp.StatusCode != 200 || len(body) != 0 {
		t.Errorf("empty: got %v %q", err, body)
	}
	if resp, body, err = get(t, url); err != nil || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(body), "<html>") {
		t.Errorf("html: got %v %q", err, body)
	}
	if resp, body, err = get(t, url); err != nil || resp.StatusCode != 200 || !strings.HasPrefix(string(body), `{"code":"-1",`) {
		t.Errorf("envelope: got %v %q", err, body)
	}
	if resp, body, err = get(t, url); err != nil || resp.Header.Get("Age") != "90" || !strings.Contains(string(body), `"id":1`) {
		t.Errorf("stale: got %v %q", err, body)
	}
	if _, _, err = get(t, url); err == nil {
		t.Error("hang: no error")
	}
	resp, _, err = get(t, url)
	if err != nil {
		t.Fatal(err)
	}
	told, err1 := http.ParseTime(resp.Header.Get("Retry-After"))
	date, err2 := http.ParseTime(resp.Header.Get("Date"))
	if wait := told.Sub(date); err1 != nil || err2 != nil || wait.Seconds() < 2 || wait.Seconds() > 3 {
		t.Errorf("date: got %v after %v", told, date)
	}
}
