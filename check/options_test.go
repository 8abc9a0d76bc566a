package check_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/check"
	"github.com/heedproject/heed/sim"
)

// quiet is a program that does nothing.
func quiet(says check.Hello) check.Program {
	return check.Program{Says: says, Begin: func(check.Setting, func(string)) func(context.Context, check.Task) check.Outcome {
		return func(context.Context, check.Task) check.Outcome { return check.Outcome{} }
	}}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	says := quiet(check.Hello{})
	for _, one := range []struct {
		name, want string
		o          check.Options
	}{
		{"no client", "no client is given", check.Options{}},
		{"negative limit", "a case cannot take -1s", check.Options{Client: says, Limit: -time.Second}},
		{"no such case", "no case is called \"nothing\"", check.Options{Client: says, Only: []string{"nothing"}}},
		{"bad pattern", "no case is called \"[\"", check.Options{Client: says, Only: []string{"["}}},
		{"no such known failure", "is no case", check.Options{Client: says, Known: []string{"final/999"}}},
		{"no such claim", "nothing is known of the claim \"magic\"", check.Options{Client: says, Claims: []check.Claim{"magic"}}},
		{"no such dialect", "nothing is known of the claim \"dialect=klingon\"", check.Options{Client: says, Claims: []check.Claim{"dialect=klingon"}}},
		{"concurrency without a number", "\"concurrency\" needs a number", check.Options{Client: says, Claims: []check.Claim{"concurrency"}}},
		{"concurrency of nothing", "\"concurrency=0\" needs a number", check.Options{Client: says, Claims: []check.Claim{"concurrency=0"}}},
		{"timeout without a unit", "\"timeout=5\" needs a time above 0, such as timeout=30s", check.Options{Client: says, Claims: []check.Claim{"timeout=5"}}},
		{"negative cap", "\"cap=-1s\" needs a time", check.Options{Client: says, Claims: []check.Claim{"cap=-1s"}}},
		{"gateway without a scheme", "this is no URL of a gateway", check.Options{Client: says, Via: "127.0.0.1:8642/demo"}},
		{"gateway that is no URL", "this is no URL of a gateway", check.Options{Client: says, Via: "http://u:secret@[::1"}},
		{"address that cannot be", "cannot be served", check.Options{Client: says, Listen: "127.0.0.1:99999"}},
		{"adapter without a URL", "the adapter", check.Options{Client: check.Adapter{URL: "http://u:secret@ x"}}},
	} {
		_, err := check.Run(t.Context(), one.o)
		if err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%s: got %v, want %q", one.name, err, one.want)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: tells a password: %v", one.name, err)
		}
	}
}

func TestTheURLOfAGatewayIsToldWithoutItsPassword(t *testing.T) {
	u := "http://user:hush@" + freePort(t) + "/demo"
	_, err := check.Run(t.Context(), check.Options{Client: check.Bare(), Via: u, Only: []string{"final/404"}})
	if err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

func TestADialectIsAClaimOfItsOwn(t *testing.T) {
	marks := func(claims ...check.Claim) map[string]check.Mark {
		r, err := check.Run(t.Context(), check.Options{Client: quiet(check.Hello{Claims: claims}), Only: []string{"quota/403-github", "quota/429-jira"}})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]check.Mark{}
		for _, one := range r.Results {
			got[one.ID] = one.Mark
		}
		return got
	}
	if got := marks(check.Retries, check.Dialect("github")); got["quota/403-github"] == check.NA || got["quota/429-jira"] != check.NA {
		t.Errorf("with dialect=github: got %v", got)
	}
	if got := marks(check.Retries, check.Dialects); got["quota/403-github"] == check.NA || got["quota/429-jira"] == check.NA {
		t.Errorf("with dialect: got %v", got)
	}
}

func TestTheNameOfAClientSteersNoTerminal(t *testing.T) {
	r, err := check.Run(t.Context(), check.Options{Client: quiet(check.Hello{Name: "a\x1b[2J\nb\x00" + strings.Repeat("c", 1000)}), Only: []string{"final/404"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := r.Client.Name; !strings.HasPrefix(n, "a [2J b ccc") || len(n) > 100 {
		t.Errorf("got %q", n)
	}
}

func TestWhatAPanicSaysIsToldWithoutSecrets(t *testing.T) {
	c := check.Program{Begin: func(s check.Setting, _ func(string)) func(context.Context, check.Task) check.Outcome {
		return func(context.Context, check.Task) check.Outcome { panic("no " + s.APIKey) }
	}}
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"transient/get-408"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Results[0]; got.Mark != check.Fail || !strings.Contains(got.Cause, "panicked: no •••") {
		t.Errorf("got %s: %s", got.Mark, got.Cause)
	}
}

// sender is a program that sends requests of its own choice.
func sender(send func(s check.Setting, t check.Task)) check.Program {
	return check.Program{Begin: func(s check.Setting, _ func(string)) func(context.Context, check.Task) check.Outcome {
		return func(_ context.Context, t check.Task) check.Outcome { send(s, t); return check.Outcome{OK: true} }
	}}
}

func get(method, url string) int {
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // only the status counts
	return resp.StatusCode
}

func TestAClientCannotReachIntoTheSimulator(t *testing.T) {
	var got []int
	c := sender(func(s check.Setting, task check.Task) {
		get("GET", task.URL)
		get("GET", task.URL)
		got = append(got, get("GET", s.BaseURL+"/_sim/journal"), get("POST", s.BaseURL+"/_sim/reset"), get("DELETE", s.BaseURL), get("DELETE", s.BaseURL+"/"))
	})
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"final/404"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range got {
		if status != http.StatusForbidden {
			t.Errorf("was answered %v", got)
		}
	}
	if one := r.Results[0]; !strings.Contains(one.Cause, "2 requests, 1 request too many") {
		t.Errorf("got %s", one.Cause)
	}
}

func TestATimelineHasABoundAndNoSecrets(t *testing.T) {
	cases := oneRead()
	c := sender(func(s check.Setting, task check.Task) {
		for range 400 {
			get("GET", s.BaseURL+"/v1/bibs/"+s.APIKey)
		}
	})
	r, err := check.Run(t.Context(), check.Options{Client: c, Cases: cases})
	if err != nil {
		t.Fatal(err)
	}
	one := r.Results[0]
	if len(one.Timeline) != 300 || one.Omitted != 100 || one.Timeline[0].Operation != "•••" {
		t.Errorf("got %d and %d more of %q", len(one.Timeline), one.Omitted, one.Timeline[0].Operation)
	}
}

// runAdapter grades one that answers /run so, with limit for a case.
func runAdapter(t *testing.T, limit time.Duration, run http.HandlerFunc) (*check.Report, error) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"claims":["retry"]}`) })
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /run", run)
	srv := httptest.NewServer(mux)
	defer srv.Close()
	return check.Run(t.Context(), check.Options{Client: check.Adapter{URL: srv.URL}, Cases: oneRead(), Limit: limit})
}

func TestAnAdapterThatMisbehavesIsToldSo(t *testing.T) {
	hangs := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body); <-r.Context().Done() }
	for name, one := range map[string]struct {
		run   http.HandlerFunc
		limit time.Duration
		want  string
	}{
		"hangs":                {hangs, 300 * time.Millisecond, "did not end in time"},
		"crashes":              {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, time.Minute, "does not answer POST /run"},
		"has failed":           {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, time.Minute, "answers POST /run with 500"},
		"leads somewhere else": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, time.Minute, "answers POST /run with 302"},
	} {
		r, err := runAdapter(t, one.limit, one.run)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Results[0]; got.Mark != check.Fail || !strings.Contains(got.Cause, one.want) {
			t.Errorf("%s: got %s: %s, want %q", name, got.Mark, got.Cause, one.want)
		}
	}
}

func TestAnAdapterThatDoesNotKeepToTheProtocolIsToldSo(t *testing.T) {
	for answer, want := range map[string]string{
		"<html>":                        "what is no JSON object",
		`{"id":"other","ok":true}`:      `POST /run for id "read" was answered for id "other"`,
		`{"id":"read","ok":"yes"}`:      "ok must be true or false, got string",
		`{"status":200}`:                "ok is missing",
		strings.Repeat("endless", 2e5):  "what is no JSON object",
		`{"ok":true,"status":"200 OK"}`: "status must be a whole number, got string",
	} {
		_, err := runAdapter(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		if err == nil || !strings.Contains(err.Error(), "the client does not keep to the protocol") || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want %q", answer, err, want)
		}
	}
}

func TestWithoutABodyItsArgumentGoesAndNoOtherOption(t *testing.T) {
	out := t.TempDir() + "/args"
	c := check.Command{Args: []string{"/bin/sh", "-c", `printf '%s ' "$@" >` + out, "sh", "-sS", "--data={body}", "--fail", "-d", "{body}", "-v", "{url}"}, Env: os.Environ()}
	if _, err := check.Run(t.Context(), check.Options{Client: c, Cases: oneRead()}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(got), "-sS --fail -v http://") {
		t.Errorf("got %s", got)
	}
}

func TestAnUnknownPlaceholderIsRefusedWithThoseThereAre(t *testing.T) {
	for arg, name := range map[string]string{"{foo}": "{foo}", "--user={token}": "{token}", "X: {URL}": "{URL}"} {
		_, err := check.Command{Args: []string{"sh", arg, "{url}"}}.Hello(t.Context())
		if err == nil || !strings.Contains(err.Error(), "nothing is known of "+name+" in the command; there are {url} {method} {header} ") {
			t.Errorf("%s: got %v", arg, err)
		}
	}
}

func TestBracesOfOtherLanguagesAreNoPlaceholders(t *testing.T) {
	for _, args := range [][]string{{"-w", "%{http_code}"}, {"${HOME}"}, {"-c", "awk {print}"}, {`{"a":1}`}, {"{1..3}"}, {"{}"}, {"{{a}}"}} {
		if _, err := (check.Command{Args: append(append([]string{"sh"}, args...), "{url}")}).Hello(t.Context()); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestAProxyOfTheEnvironmentIsNotInTheWay(t *testing.T) {
	out := t.TempDir() + "/proxy"
	c := check.Command{Args: []string{"/bin/sh", "-c", `printf %s "$NO_PROXY" >` + out, "sh", "{url}"}, Env: append(os.Environ(), "NO_PROXY=intranet.example")}
	if _, err := check.Run(t.Context(), check.Options{Client: c, Cases: oneRead()}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(out); err != nil || string(got) != "intranet.example,127.0.0.1,localhost,::1" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestATimeoutThatIsTooLongToBeSeenIsNoFailure(t *testing.T) {
	cases := check.All()
	for i := range cases {
		cases[i].World = func(check.Place) sim.World { return sim.World{} }
	}
	r, err := check.Run(t.Context(), check.Options{Client: quiet(check.Hello{Claims: []check.Claim{check.Retries, "timeout=30s"}}), Cases: cases, Only: []string{"timeout"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.Results {
		if one.Mark != check.Unknown || !strings.Contains(one.Cause, "too long to be seen") {
			t.Errorf("%s: got %s: %s", one.ID, one.Mark, one.Cause)
		}
	}
}

func TestEveryRuleSaysWhereItIsWritten(t *testing.T) {
	for _, c := range check.All() {
		if c.Rule.Text == "" || c.Rule.Source == "" {
			t.Errorf("%s: got the rule %q of %q, want both", c.ID, c.Rule.Text, c.Rule.Source)
		}
	}
}

func TestTheOtherHostKeepsItsSimulatorToItself(t *testing.T) {
	var got []int
	c := check.Program{Says: check.Hello{Claims: []check.Claim{check.Headers}}, Begin: func(check.Setting, func(string)) func(context.Context, check.Task) check.Outcome {
		return func(_ context.Context, t check.Task) check.Outcome {
			there := follow(t)
			got = append(got, get("GET", there+"/_sim/journal"), get("POST", there+"/_sim/reset"), get("DELETE", there))
			return check.Outcome{OK: true}
		}
	}}
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"secrets/redirect"}})
	if err != nil {
		t.Fatal(err)
	}
	if one := r.Results[0]; one.Mark != check.Fail || one.Cause != "the other host was sent the credential" {
		t.Errorf("got %s: %s; the simulator answered %v", one.Mark, one.Cause, got)
	}
}

// follow goes where a task is led, with all that it carries, and returns what
// the address of its case begins with there.
func follow(t check.Task) string {
	url := t.URL
	for range 2 {
		r, err := http.NewRequest(t.Method, url, nil)
		if err != nil {
			return ""
		}
		for name, v := range t.Header {
			r.Header.Set(name, v)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return ""
		}
		_ = resp.Body.Close() // only where it leads counts
		url = cmp.Or(resp.Header.Get("Location"), url)
	}
	there, _, _ := strings.Cut(url, "/v1/")
	return there
}

func TestAClientThatAsksForSomethingElsePassesNothing(t *testing.T) {
	c := sender(func(s check.Setting, _ check.Task) { get("GET", s.BaseURL+"/v1/other") })
	c.Says.Claims = []check.Claim{check.Retries, check.Writes, check.Headers, check.Budgets, check.Breaks, check.Remembers, check.Parallel, check.Tokens}
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"final", "keys", "outage", "breaker", "tokens", "secrets"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range r.Results {
		if one.Mark == check.Pass {
			t.Errorf("%s passed: %s", one.ID, one.Cause)
		}
	}
}

func TestASuccessThatWasNeverGotIsNoRenewal(t *testing.T) {
	c := sender(func(_ check.Setting, t check.Task) { get(t.Method, t.URL) }) // without a token
	c.Says.Claims = []check.Claim{check.Tokens, check.Remembers}
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"tokens/expire"}})
	if err != nil {
		t.Fatal(err)
	}
	if one := r.Results[0]; one.Mark != check.Fail || !strings.Contains(one.Cause, "though the last answer was 401") {
		t.Errorf("got %s: %s", one.Mark, one.Cause)
	}
}

func TestAWebhookThatNobodyAnswersWasNotRefused(t *testing.T) {
	c := check.Program{Says: check.Hello{Claims: []check.Claim{check.Webhooks, check.Writes}}, Begin: func(check.Setting, func(string)) func(context.Context, check.Task) check.Outcome {
		return func(_ context.Context, t check.Task) check.Outcome {
			if t.Kind == check.Call {
				get(t.Method, t.URL)
			}
			return check.Outcome{OK: true, URL: "http://127.0.0.1:1/"}
		}
	}}
	r, err := check.Run(t.Context(), check.Options{Client: c, Only: []string{"jobs/webhook-forged"}})
	if err != nil {
		t.Fatal(err)
	}
	if one := r.Results[0]; one.Mark != check.Unknown {
		t.Errorf("got %s: %s", one.Mark, one.Cause)
	}
}

func TestACommandIsNamedAfterItsProgramOrScript(t *testing.T) {
	script := filepath.Join(t.TempDir(), "sync.py")
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"sync.py": {"sh", "-u", script, "{url}"},
		"sh":      {"/bin/sh", "-c", "exit 0", "{url}"},
		"env":     {"env", "{url}", script},
	} {
		h, err := check.Command{Args: args}.Hello(t.Context())
		if err != nil || h.Name != want {
			t.Errorf("%q: got %q, %v, want %q", args, h.Name, err, want)
		}
	}
}
