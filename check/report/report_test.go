package report_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/check"
	"github.com/heedproject/heed/check/report"
)

// found is a report with one case of each mark.
func found() *check.Report {
	rule := check.Rule{Text: "a rule", Source: "RFC 9110"}
	return &check.Report{
		Client: check.Hello{Name: "curl", Version: "8"}, Seed: 7, Took: 2 * time.Second, Grade: "D", Score: 0.5,
		Groups: []check.Grade{
			{Group: "final", Grade: "D", Score: 0.5, Passed: 1, Failed: 1},
			{Group: "tokens", Grade: "-", NA: 1, Unknown: 1},
		},
		Results: []check.Result{
			{ID: "final/400", Group: "final", Title: "GET: 400", Rule: rule, Weight: 1, Mark: check.Pass, Cause: "1 request"},
			{ID: "final/404", Group: "final", Title: "GET: <404>", Rule: rule, Weight: 1, Mark: check.Fail, Cause: "2 requests & more",
				Timeline: []check.Event{{Operation: "read", Number: 1, Method: "GET", Status: 404},
					{At: time.Second, Operation: "read", Number: 2, Method: "GET", Status: 404, Gap: time.Second}}},
			{ID: "tokens/expire", Group: "tokens", Title: "a token", Rule: rule, Weight: 1, Mark: check.NA, Cause: "not claimed"},
			{ID: "tokens/refused", Group: "tokens", Title: "no token", Rule: rule, Weight: 1, Mark: check.Unknown, Cause: "not seen"},
		},
	}
}

func written(t *testing.T, write func(io.Writer, *check.Report) error, r *check.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTheScorecardShowsWhatDidNotPassWithItsCause(t *testing.T) {
	var b bytes.Buffer
	if err := report.Text(&b, found(), report.Terminal{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"curl 8", "final        D", "1 of 2", "final/404", "2 requests & more", "rule: a rule (RFC 9110)", "tokens/refused"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "final/400") || strings.Contains(b.String(), "\x1b") {
		t.Errorf("shows what passed, or colours:\n%s", b.String())
	}
}

func TestAGradeThatRestsOnLittleIsMarkedInEveryForm(t *testing.T) {
	r := found()
	r.Grade, r.Thin = "A+", true
	r.Groups[0].Grade, r.Groups[0].Thin = "B", true
	text := func(w io.Writer, r *check.Report) error { return report.Text(w, r, report.Terminal{}) }
	for name, one := range map[string]struct {
		write func(io.Writer, *check.Report) error
		want  []string
	}{
		"text":  {text, []string{"  A+~  (", "final        B~  ", "~ rests on less than half of what applies"}},
		"JSON":  {report.JSON, []string{`"thin": true`}},
		"HTML":  {report.HTML, []string{">A&#43;~<", "~ Less than half of what applies", ">B~<"}},
		"badge": {report.Badge, []string{">A+~<"}},
	} {
		got := written(t, one.write, r)
		for _, want := range one.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, got)
			}
		}
	}
}

func TestNotesAreInEveryFormForPeople(t *testing.T) {
	r := found()
	r.Notes = []string{"it wrote 2 stray lines"}
	text := func(w io.Writer, r *check.Report) error { return report.Text(w, r, report.Terminal{}) }
	for name, write := range map[string]func(io.Writer, *check.Report) error{"text": text, "HTML": report.HTML, "JSON": report.JSON} {
		if got := written(t, write, r); strings.Count(got, "it wrote 2 stray lines") != 1 {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

func TestTheScorecardSaysWhatIsNotClaimedAndHowToClaimIt(t *testing.T) {
	r := found()
	for claim, n := range map[check.Claim]int{"write": 3, "pace": 2, "dialect=github": 2, "dialect=jira": 3, "cap": 1, "token": 1, "stale": 1, "validate": 1} {
		for range n {
			r.Results = append(r.Results, check.Result{Mark: check.NA, Lacks: claim})
		}
	}
	for want, term := range map[string]report.Terminal{
		"n/a: 5 need dialect (--claim dialect), 3 need write (use {method} {header} {body}), 2 need pace (--claim pace), " +
			"1 need cap (--claim cap=…), 1 need stale (--claim stale), 1 need token (--claim token), 1 need others (heed check list); " +
			"claim only what the client does": {Command: true, Width: 1000},
		" 3 need write (--claim write), ": {Width: 1000},
	} {
		var b bytes.Buffer
		if err := report.Text(&b, r, term); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("lacks %q:\n%s", want, b.String())
		}
	}
}

func TestTheTicksOfAShortTimelineDiffer(t *testing.T) {
	r := found()
	r.Results[1].Timeline = r.Results[1].Timeline[:1]
	got := written(t, report.HTML, r)
	for _, want := range []string{">0 ms<", ">20 ms<", ">40 ms<", ">60 ms<", ">80 ms<", ">100 ms<"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("there is no tick %s", want)
		}
	}
}

func TestAGroupWithoutACaseThatCountsHasNoMeter(t *testing.T) {
	if got := strings.Count(written(t, report.HTML, found()), "<meter"); got != 1 {
		t.Errorf("%d meters for one group with a grade and one without", got)
	}
}

func TestAGradeThatRestsOnMuchHasNoMark(t *testing.T) {
	if got := written(t, report.Badge, found()); strings.Contains(got, "~") {
		t.Error(got)
	}
}

func TestNoCauseIsWiderThanTheTerminal(t *testing.T) {
	r := found()
	r.Results[1].Cause = strings.Repeat("many words ", 40)
	var b bytes.Buffer
	if err := report.Text(&b, r, report.Terminal{Width: 50}); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 50 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}

func TestColoursAreWrittenWhereTheyAreAskedFor(t *testing.T) {
	var b bytes.Buffer
	if err := report.Text(&b, found(), report.Terminal{Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\x1b[31mfail") {
		t.Errorf("got %q", b.String())
	}
}

func TestAReportIsReadAsItWasWritten(t *testing.T) {
	got, err := report.Read([]byte(written(t, report.JSON, found())))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, found()); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoReportIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}", "[]", `{"results": 3}`, `{"results":[{"id":"final/404","verdict":"\u001b[2Jpass"}]}`} {
		if _, err := report.Read([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"grade":"A","results":[{"id":"a/b","verdict":"pass"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := report.Read(text)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := report.HTML(&b, r); err != nil {
			t.Error(err)
		}
		if d := report.Compare(r, r); len(d.Changes) > len(r.Results) || d.New > 0 {
			t.Errorf("%d changes and %d new cases of %d that are the same", len(d.Changes), d.New, len(r.Results))
		}
	})
}

func TestJUnitCountsFailuresAndWhatWasSkipped(t *testing.T) {
	var got struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(written(t, report.JUnit, found())), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tests != 4 || got.Failures != 1 || got.Skipped != 2 {
		t.Errorf("got %d tests, %d failures, %d skipped", got.Tests, got.Failures, got.Skipped)
	}
	if f := got.Suites[0].Cases[1].Failure; f == nil || f.Message != "2 requests & more" {
		t.Errorf("got %+v", f)
	}
}

func TestAKnownFailureIsNoFailureOfJUnit(t *testing.T) {
	r := found()
	r.Results[1].Known = true
	if got := written(t, report.JUnit, r); strings.Contains(got, "<failure") {
		t.Error(got)
	}
}

func TestThePageHoldsEveryCaseAndNeedsNothingElse(t *testing.T) {
	got := written(t, report.HTML, found())
	for _, want := range []string{"final/400", "2 requests &amp; more", "GET: &lt;404&gt;", "read, request 2: GET at 1.000 s, 1.000 s after the answer before; answered 404"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
	for _, never := range []string{"<script", "<link", "src=", "@import", "url("} {
		if strings.Contains(got, never) {
			t.Errorf("has %q", never)
		}
	}
}

func TestThePageShowsHowAFleetSpread(t *testing.T) {
	r := found()
	fleet := check.Result{ID: "fleet/backoff", Group: check.FleetGroup, Title: "32 workers", Mark: check.Pass}
	for i := range 12 {
		fleet.Timeline = append(fleet.Timeline, check.Event{Operation: "worker-" + string(rune('a'+i)), Number: 1, Status: 503})
	}
	r.Results = append(r.Results, fleet)
	if got := written(t, report.HTML, r); !strings.Contains(got, "Dispersion") || !strings.Contains(got, "worker-l, request 1") {
		t.Error("there is no picture of the fleet")
	}
}

// telltale is a client that puts its credential wherever it can.
func telltale() check.Program {
	return check.Program{Says: check.Hello{Name: "telltale", Claims: []check.Claim{check.Retries, check.Writes, check.Headers}},
		Begin: func(s check.Setting, log func(string)) func(context.Context, check.Task) check.Outcome {
			return func(ctx context.Context, t check.Task) check.Outcome {
				log(s.APIKey)
				for _, path := range []string{"/v1/items/" + s.APIKey, "/" + base64.StdEncoding.EncodeToString([]byte(s.APIKey))} {
					r, err := http.NewRequestWithContext(ctx, s.APIKey, s.BaseURL+path, nil)
					if err != nil {
						continue
					}
					if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
				}
				if t.Method == http.MethodPost {
					panic(s.APIKey)
				}
				return check.Outcome{Error: s.APIKey}
			}
		}}
}

func TestNoFormOfAReportHasASecretOfTheRun(t *testing.T) {
	r, err := check.Run(t.Context(), check.Options{Client: telltale(), Only: []string{"transient/*-408", "secrets/refused", "final/404"}})
	if err != nil {
		t.Fatal(err)
	}
	text := func(w io.Writer, r *check.Report) error { return report.Text(w, r, report.Terminal{All: true}) }
	for name, write := range map[string]func(io.Writer, *check.Report) error{"JSON": report.JSON, "JUnit": report.JUnit, "HTML": report.HTML,
		"badge": report.Badge, "text": text} {
		got := written(t, write, r)
		for _, secret := range []string{"hc-0-", base64.StdEncoding.EncodeToString([]byte("hc-0-f"))[:7]} {
			if i := strings.Index(got, secret); i >= 0 {
				t.Errorf("%s has %q", name, got[max(0, i-80):min(len(got), i+80)])
			}
		}
	}
	if r.Results[0].Mark != check.Fail || len(r.Results[0].Timeline) == 0 {
		t.Errorf("nothing was told: %+v", r.Results[0])
	}
}

func TestWhatATimelineLacksIsCounted(t *testing.T) {
	r := found()
	r.Results[1].Omitted = 7
	if got := written(t, report.HTML, r); !strings.Contains(got, "7 more requests are not shown") {
		t.Error("the page does not tell")
	}
	r.Results[1].Timeline = make([]check.Event, 45)
	if got := report.Lines(r.Results[1]); !strings.HasSuffix(got, "… 12 more\n") {
		t.Errorf("got %s", got[len(got)-40:])
	}
}

func TestTheBadgeIsXMLWithTheGrade(t *testing.T) {
	got := written(t, report.Badge, found())
	var any struct{ XMLName xml.Name }
	if err := xml.Unmarshal([]byte(got), &any); err != nil || any.XMLName.Local != "svg" || !strings.Contains(got, ">D</text>") {
		t.Errorf("%v: %s", err, got)
	}
}

func TestCompareLooksAtTheCasesOfBothReports(t *testing.T) {
	old, now := found(), found()
	now.Results[1].Mark, now.Results[1].Cause = check.Pass, "1 request"
	now.Results[0].ID = "final/409"
	want := report.Difference{Changes: []report.Change{{ID: "final/404", Before: check.Fail, After: check.Pass, Cause: "1 request"}},
		Before: check.Grade{Grade: "F", Failed: 1, NA: 1, Unknown: 1}, Now: check.Grade{Grade: "A+", Score: 1, Passed: 1, NA: 1, Unknown: 1},
		Shared: 3, New: 1, Gone: 1}
	if diff := cmp.Diff(report.Compare(old, now), want); diff != "" {
		t.Error(diff)
	}
}

func TestChangesHaveALineForEachAndCountsOfTheRest(t *testing.T) {
	old, now := found(), found()
	now.Results[1].Mark, now.Results[1].Cause = check.Pass, "1 request"
	now.Results[0].ID = "final/409"
	var b bytes.Buffer
	if err := report.Changes(&b, old, now, report.Terminal{}); err != nil {
		t.Fatal(err)
	}
	want := `of 3 cases in both reports: grade F before, A+ now; 1 case changed; left out: 1 new, 1 gone
  final/404: pass, was fail: 1 request

`
	if diff := cmp.Diff(b.String(), want); diff != "" {
		t.Error(diff)
	}
}
