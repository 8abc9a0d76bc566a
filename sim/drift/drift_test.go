package drift_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/drift"
)

// record puts a recorder before the provider, runs use with its URL and
// returns what was recorded.
func record(t *testing.T, provider http.Handler, o drift.RecorderOptions, use func(base string)) string {
	t.Helper()
	upstream := httptest.NewServer(provider)
	defer upstream.Close()
	var out bytes.Buffer
	var err error
	o.Out = &out
	if o.Upstream, err = url.Parse(upstream.URL); err != nil {
		t.Fatal(err)
	}
	r, err := drift.NewRecorder(o)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(r)
	use(front.URL)
	front.Close() // waits for the answers, which are then recorded
	if _, err := r.Done(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// send makes a request and returns the body of the answer.
func send(t *testing.T, method, url, body string, header ...string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, recording string) []drift.Exchange {
	t.Helper()
	all, err := drift.Read("r.jsonl", strings.NewReader(recording))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// compare replays a recording and returns the differences, a line each.
func compare(t *testing.T, recording string, p sim.Pack, o drift.Options) (lines []string, r drift.Report) {
	t.Helper()
	r, err := drift.Compare(read(t, recording), p, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Differences {
		lines = append(lines, fmt.Sprintf("%s %s: %s, %s", d.Operation, d.Where, d.Recorded, d.Pack))
	}
	return lines, r
}

const secret = "S3cr3t-canary"

// leaky says the secret wherever an answer can.
func leaky(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("X-Token", secret)
	w.Header().Set("Set-Cookie", "s="+secret)
	if strings.HasPrefix(r.URL.Path, "/xml") {
		w.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(w, `<a b="%s"><c>%[1]s</c></a>`, secret)
		return
	}
	w.Header().Set("Content-Type", "application/json; k="+secret)
	fmt.Fprintf(w, `{"id":"%s","list":["%[1]s"],"by":{"%[1]s":1},"mail":"%[1]s@example.com"}`, secret)
}

func TestNoValueIsRecorded(t *testing.T) {
	got := record(t, http.HandlerFunc(leaky), drift.RecorderOptions{}, func(base string) {
		send(t, "POST", base+"/v1/things/"+secret+"?q="+secret+"&"+secret+"=1", `{"password":"`+secret+`","`+secret+`":1}`, "Authorization: Bearer "+secret)
		send(t, "POST", base+"/v1/"+secret, "password="+secret+"&"+secret+"=1", "Content-Type: application/x-www-form-urlencoded")
		send(t, "GET", base+"/xml/"+secret, "")
		send(t, "PUT", base+"/", secret, "Content-Type: text/plain; x="+secret)
	})
	if strings.Contains(strings.ToLower(got), strings.ToLower(secret)) {
		t.Errorf("the secret is in the recording:\n%s", got)
	}
	if n := len(read(t, got)); n != 4 {
		t.Errorf("%d exchanges were recorded", n)
	}
}

func TestTheCallerGetsWhatTheProviderSaid(t *testing.T) {
	record(t, http.HandlerFunc(leaky), drift.RecorderOptions{}, func(base string) {
		if got := send(t, "GET", base+"/xml/x", ""); got != `<a b="`+secret+`"><c>`+secret+`</c></a>` {
			t.Errorf("got %s", got)
		}
	})
}

func TestAnIDBecomesAReferenceToTheAnswerThatGaveIt(t *testing.T) {
	api, err := sim.New(sim.World{})
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, record(t, api, drift.RecorderOptions{Packs: []sim.Pack{sim.Generic()}}, func(base string) {
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(send(t, "POST", base+"/v1/charges", `{"amount":7,"currency":"eur"}`)), &made); err != nil {
			t.Fatal(err)
		}
		send(t, "GET", base+"/v1/charges/"+made.ID+"?of="+made.ID, "")
		send(t, "GET", base+"/v1/charges/ch_unknown0", "")
	}))
	if diff := cmp.Diff([]string{got[0].Path, got[1].Path, got[1].Query.Fields["of"].Ref, got[2].Path},
		[]string{"/v1/charges", "/v1/charges/{1:/id}", "1:/id", "/v1/charges/{}"}); diff != "" {
		t.Error(diff)
	}
}

func TestAPackTellsNamesFromValuesInPaths(t *testing.T) {
	got := read(t, record(t, http.HandlerFunc(leaky), drift.RecorderOptions{Packs: []sim.Pack{people(nil)}}, func(base string) {
		send(t, "GET", base+"/people/john", "")
		send(t, "GET", base+"/other/john", "")
	}))
	if diff := cmp.Diff([]string{got[0].Path, got[1].Path}, []string{"/people/{}", "/{}/{}"}); diff != "" {
		t.Error(diff)
	}
}

// paths records a GET of each path and returns what was written of it.
func paths(t *testing.T, o drift.RecorderOptions, asked ...string) (got []string) {
	t.Helper()
	recording := record(t, http.HandlerFunc(leaky), o, func(base string) {
		for _, path := range asked {
			send(t, "GET", base+path, "")
		}
	})
	for _, e := range read(t, recording) {
		got = append(got, e.Path)
	}
	return got
}

// routes is a pack with these routes.
func routes(all ...string) sim.Pack {
	p := people(nil)
	p.Operations = nil
	for _, route := range all {
		p.Operations = append(p.Operations, sim.Operation{Route: route, Do: func(*sim.Exchange) sim.Answer { return sim.JSON(200, nil) }})
	}
	return p
}

func TestASegmentThatThePackDoesNotKnowIsAValue(t *testing.T) {
	p := routes("GET /v1/charges", "GET /v1/charges/{id}", "GET /v1/files/{id}.json", "GET /raw/{path...}", "POST /v1/charges/{id}/capture")
	got := paths(t, drift.RecorderOptions{Packs: []sim.Pack{p}},
		"/v1/users/mueller", "/v1/charges/capture", "/v1/charges/mueller/capture", "/v1/files/mueller.json", "/v1/files/.json",
		"/raw/mueller/charges", "/mueller", "/v2/charges/mueller/", "/")
	want := []string{"/v1/{}/{}", "/v1/charges/{}", "/v1/charges/{}/capture", "/v1/files/{}.json", "/v1/files/{}",
		"/raw/{}/{}", "/{}", "/v2/charges/{}/", "/"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestWithoutAPackOnlyKnownWordsAndVersionsAreNames(t *testing.T) {
	words := drift.Words([]sim.Pack{routes("GET /v1/charges/{id}/capture", "GET /bibs/*", "GET /raw/{path...}")})
	if diff := cmp.Diff(words, []string{"bibs", "capture", "charges", "raw", "v1"}); diff != "" {
		t.Errorf("words, -got +want:\n%s", diff)
	}
	got := paths(t, drift.RecorderOptions{Words: words},
		"/v1/charges/ch_abcdefghijklmnop", "/v60.0/users/mueller", "/2024-01/bibs/mueller.json", "/raw/bibs")
	if diff := cmp.Diff(got, []string{"/v1/charges/{}", "/v60.0/{}/{}", "/2024-01/bibs/{}", "/raw/bibs"}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestWithoutWordsNothingOfAPathIsWritten(t *testing.T) {
	if diff := cmp.Diff(paths(t, drift.RecorderOptions{}, "/v1/charges/capture"), []string{"/v1/{}/{}"}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

// lettered makes charges whose ids are letters only.
func lettered() sim.Pack {
	p := people(nil)
	p.Operations = []sim.Operation{
		{Name: "charges.create", Route: "POST /v1/charges", Do: func(*sim.Exchange) sim.Answer {
			return sim.JSON(200, map[string]any{"id": "ch_abcdefghijklmnop", "object": "charge", "owner": "mueller"})
		}},
		{Name: "charges.get", Route: "GET /v1/charges/{id}", Do: func(x *sim.Exchange) sim.Answer {
			if x.Path != "/v1/charges/ch_abcdefghijklmnop" {
				return sim.JSON(404, map[string]any{"error": "there is none"})
			}
			return sim.JSON(200, map[string]any{"id": "ch_abcdefghijklmnop"})
		}},
	}
	return p
}

func TestAnIDOfLettersIsAReferenceThatDriftFollows(t *testing.T) {
	api, err := sim.New(sim.World{Packs: []sim.Pack{lettered()}})
	if err != nil {
		t.Fatal(err)
	}
	recording := record(t, api, drift.RecorderOptions{Packs: []sim.Pack{lettered()}}, func(base string) {
		send(t, "POST", base+"/v1/charges", "")
		send(t, "GET", base+"/v1/charges/ch_abcdefghijklmnop?charge=ch_abcdefghijklmnop&object=charge", "")
	})
	e := read(t, recording)[1]
	got := []string{e.Path, e.Query.Fields["charge"].Ref, e.Query.Fields["object"].Ref}
	if diff := cmp.Diff(got, []string{"/v1/charges/{1:/id}", "1:/id", ""}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
	if lines, r := compare(t, recording, lettered(), drift.Options{}); len(lines) > 0 || r.Compared != 2 || len(r.Skipped) > 0 {
		t.Errorf("got %q, %+v", lines, r)
	}
}

func TestAKeyThatStoodInThePathIsData(t *testing.T) {
	provider := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"people":{"mueller":{"id":"meier","age":1},"john":{"id":"x","age":2}}}`)
	})
	got := record(t, provider, drift.RecorderOptions{Packs: []sim.Pack{people(nil)}}, func(base string) {
		send(t, "GET", base+"/people/mueller", `{"mueller":1}`, "Content-Type: application/json")
	})
	if strings.Contains(got, "mueller") {
		t.Errorf("the name is in the recording:\n%s", got)
	}
}

func TestTheValueOfAParameterIsKeptOnlyWhereTheOGCHasIt(t *testing.T) {
	got := read(t, record(t, http.HandlerFunc(leaky), drift.RecorderOptions{}, func(base string) {
		send(t, "GET", base+"/?SERVICE=WFS&REQUEST=GetFeature&VERSION=2.0.0&typeNames=roads", "")
		send(t, "POST", base+"/?request=eyJhbGciOiJub25l&service=mueller&version=canary", `{"request":"call Mueller"}`)
	}))
	var values []string
	for _, s := range []*drift.Shape{got[0].Query.Fields["SERVICE"], got[0].Query.Fields["REQUEST"], got[0].Query.Fields["VERSION"],
		got[0].Query.Fields["typeNames"], got[1].Query.Fields["request"], got[1].Query.Fields["service"], got[1].Query.Fields["version"],
		got[1].Request.Fields["request"]} {
		values = append(values, s.Value)
	}
	if diff := cmp.Diff(values, []string{"WFS", "GetFeature", "2.0.0", "", "", "", "", ""}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestAParameterThatSomebodyNamesIsKept(t *testing.T) {
	got := read(t, record(t, http.HandlerFunc(leaky), drift.RecorderOptions{Keep: []string{"currency"}}, func(base string) {
		send(t, "GET", base+"/?currency=eur&request=GetMap", "")
	}))[0].Query.Fields
	if got["currency"].Value != "eur" || got["request"].Value != "" {
		t.Errorf("got %q and %q kept", got["currency"].Value, got["request"].Value)
	}
}

func TestASimulatorDoesNotDifferFromItself(t *testing.T) {
	api, err := sim.New(sim.World{Steps: "GET /v1/bibs/9: 503, 429(after=2s)"})
	if err != nil {
		t.Fatal(err)
	}
	recording := record(t, api, drift.RecorderOptions{Packs: []sim.Pack{sim.Generic()}}, func(base string) {
		charge := send(t, "POST", base+"/v1/charges", `{"amount":7,"currency":"eur"}`)
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(charge), &made); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/v1/charges/" + made.ID, "/v1/charges/ch_0", "/v1/bibs", "/v1/bibs/9", "/health"} {
			send(t, "GET", base+path, "")
		}
	})
	got, r := compare(t, recording, sim.Generic(), drift.Options{Values: map[string]string{"currency": "eur"}})
	if len(got) > 0 || r.Compared != 6 || len(r.Skipped) > 0 {
		t.Errorf("got %q, %+v", got, r)
	}
}

// people is a pack with one person, who is written as given.
func people(person any) sim.Pack {
	return sim.Pack{Name: "people", Operations: []sim.Operation{{Name: "people.get", Route: "GET /people/{id}",
		Do: func(*sim.Exchange) sim.Answer { return sim.JSON(200, person).With("X-Extra", "7") }}}}
}

func TestWhatDiffersIsTold(t *testing.T) {
	real := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/hal+json")
		w.Header().Set("X-Total", "3")
		w.WriteHeader(203)
		fmt.Fprint(w, `{"id":7,"born":"2026-03-01","name":null,"tags":[{"a":1},{"a":2,"b":3}],"more":{"x":1},"gone":1.5}`)
	})
	recording := record(t, real, drift.RecorderOptions{Packs: []sim.Pack{people(nil)}}, func(base string) {
		send(t, "GET", base+"/people/7", "")
		send(t, "GET", base+"/people/8", "")
		send(t, "GET", base+"/places/8", "")
	})
	got, r := compare(t, recording, people(map[string]any{
		"id": "7", "born": "soon", "name": "N", "tags": []any{map[string]any{"a": 1}}, "more": []int{1}, "new": true,
	}), drift.Options{})
	want := []string{
		" operation: GET /{}/{}, none such",
		"people.get body.born: date, string",
		"people.get body.gone: number, none",
		"people.get body.id: integer, digits",
		"people.get body.more: object, list",
		"people.get body.new: none, boolean",
		"people.get header Content-Type: application/hal+json, application/json",
		"people.get header X-Extra: none, digits",
		"people.get header X-Total: digits, none",
		"people.get status: 203, 200",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	if d := r.Differences[1]; d.Count != 2 || d.First != 1 || d.Lacks || !r.Differences[2].Lacks {
		t.Errorf("got %+v", r.Differences[1:3])
	}
}

func TestAFailureIsComparedInTheWordsOfThePack(t *testing.T) {
	real := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(429)
		fmt.Fprint(w, `{"error":{"code":"slow down"}}`)
	})
	recording := record(t, real, drift.RecorderOptions{Packs: []sim.Pack{people(nil)}}, func(base string) { send(t, "GET", base+"/people/7", "") })
	p := people(nil)
	p.Dialect.Refuse = func(_ *sim.Exchange, r sim.Refusal) sim.Answer {
		return sim.JSON(r.StatusOr(400), map[string]any{"error": "slow down"})
	}
	got, _ := compare(t, recording, p, drift.Options{})
	if diff := cmp.Diff(got, []string{"people.get body.error: object, string"}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatThePackRefusesIsNotCompared(t *testing.T) {
	recording := record(t, http.HandlerFunc(leaky), drift.RecorderOptions{Packs: []sim.Pack{sim.Generic()}}, func(base string) {
		send(t, "POST", base+"/v1/charges", `{"amount":7,"currency":"eur"}`)
	})
	got, r := compare(t, recording, sim.Generic(), drift.Options{})
	if len(got) > 0 || r.Compared != 0 || len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0], "refused what was made up") {
		t.Errorf("got %q, %+v", got, r)
	}
}

// spaces is an endless file of empty lines.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

func TestARecordingThatDoesNotEndIsRefused(t *testing.T) {
	for want, in := range map[string]io.Reader{
		"r.jsonl: a recording of more than 64 MiB is not compared": spaces{},
		"r.jsonl:2: an exchange takes more than 4 MiB":             io.MultiReader(strings.NewReader("\n"), strings.NewReader(strings.Repeat("x", 5<<20))),
	} {
		if _, err := drift.Read("r.jsonl", in); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestABadRecordingIsToldWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                 "r.jsonl:1: this is no exchange",
		"\n{}":                              "r.jsonl:2: number or method is missing",
		`{"n":1,"method":"GET","path":"x"}`: "r.jsonl:1: the path is none",
		`{"n":1,"method":"GET","path":"/","status":7}`:   "r.jsonl:1: there is no status 7",
		`{"n":1,"method":"GET","path":"/","status":200}`: "r.jsonl:1: the shape of the body is missing",
	} {
		if _, err := drift.Read("r.jsonl", strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestAnUpstreamIsAURL(t *testing.T) {
	for _, text := range []string{"", "api.example.com", "ftp://h"} {
		u, _ := url.Parse(text)
		if _, err := drift.NewRecorder(drift.RecorderOptions{Upstream: u}); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func FuzzCompare(f *testing.F) {
	f.Add(`{"n":1,"method":"POST","path":"/v1/charges/{1:/id}","status":201,"request":{"is":"object","fields":{"amount":{"is":"integer"}}},"body":{"is":"object"},"header":{}}`)
	f.Add(`{"n":1,"method":"GET","path":"/v1/bibs","query":{"is":"form","fields":{"limit":{"is":"digits"}}},"status":429,"body":{"is":"list","of":{"is":"null|string"}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := drift.Read("r", strings.NewReader(text))
		if err != nil {
			return
		}
		if r, err := drift.Compare(all, sim.Generic(), drift.Options{}); err != nil || r.Exchanges != len(all) {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}
