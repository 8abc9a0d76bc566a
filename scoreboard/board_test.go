package main

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	grading "github.com/heedproject/heed/check"
)

// result is one of a report.
func result(id string, mark grading.Mark, weight int) grading.Result {
	group, _, _ := strings.Cut(id, "/")
	return grading.Result{ID: id, Group: group, Title: "what happens", Mark: mark, Weight: weight, Cause: "why <so>"}
}

// mixed is a report of a client that passed one case, failed one and claims
// not to do the third.
func mixed() *grading.Report {
	r := &grading.Report{Client: grading.Hello{Version: "7.1", Claims: []grading.Claim{"write", "retry"}}, Results: []grading.Result{
		result("transient/one", grading.Pass, 3), result("transient/two", grading.Fail, 1), result("jobs/poll", grading.NA, 1)}}
	r.Groups = []grading.Grade{{Group: "transient"}, {Group: "jobs"}}
	sum(r)
	return r
}

func shown() *board {
	b := &board{}
	for _, setting := range settings {
		b.put(newRow(clients[0], setting, mixed()))
	}
	return b
}

func TestGradesAreThoseOfTheCheck(t *testing.T) {
	hasty := grading.Program{Says: grading.Hello{Name: "hasty", Claims: []grading.Claim{"write", "header", "retry", "parallel"}},
		Begin: func(grading.Setting, func(string)) func(context.Context, grading.Task) grading.Outcome { return twice }}
	r, err := grading.Run(t.Context(), grading.Options{Client: hasty, Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Score == 0 || r.Score == 1 {
		t.Fatalf("the score is %v, which shows little", r.Score)
	}
	again := *r
	again.Groups = slices.Clone(r.Groups)
	again.Grade, again.Score, again.Groups[0].Score = "", 0, 0
	sum(&again)
	if diff := cmp.Diff(&again, r); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

// twice sends everything twice, without a pause.
func twice(ctx context.Context, task grading.Task) grading.Outcome {
	o := grading.Outcome{ID: task.ID}
	for range 2 {
		r, err := http.NewRequestWithContext(ctx, task.Method, task.URL, strings.NewReader(task.Body))
		if err != nil {
			return o
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		o.OK = err == nil && resp.StatusCode == http.StatusOK
	}
	return o
}

func TestWhatIsNotPassedIsTriedAgainAndTheLastVerdictCounts(t *testing.T) {
	r := mixed()
	ids := unsettled(r.Results)
	again := &grading.Report{Results: []grading.Result{result("transient/two", grading.Pass, 1), result("transient/one", grading.Fail, 3)}}
	replace(r, again, ids)
	got := []any{ids, r.Results[0].Mark, r.Results[1].Mark}
	if diff := cmp.Diff(got, []any{[]string{"transient/two"}, grading.Pass, grading.Pass}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestAFleetInLockStepIsNotTriedAgain(t *testing.T) {
	all := []grading.Result{result("fleet/even", grading.Unknown, 1), result("fleet/backoff", grading.Fail, 1), result("keys/each", grading.Pass, 1)}
	if diff := cmp.Diff(unsettled(all), []string{"fleet/even"}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestARowReplacesThatOfTheSameClientAndSetting(t *testing.T) {
	b := shown()
	better := mixed()
	better.Results[1].Mark = grading.Pass
	b.put(newRow(clients[0], best, better))
	got := []int{len(b.Rows), b.Rows[0].Passed, b.Rows[1].Passed}
	if diff := cmp.Diff(got, []int{2, 2, 1}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestThePageHasGradeNumbersAndCauses(t *testing.T) {
	page := shown().markdown()
	for _, want := range []string{"with 3 cases for each",
		"| client | all | passed | failed | unknown | n/a | transient | jobs |",
		"| curl | **C 75** | 1 | 1 | 0 | 1 | C 75 | – |",
		"**curl** 7.1", "Claims: retry, write",
		"- `transient/two` (what happens): why &lt;so>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q\n%s", want, page)
		}
	}
}

func TestClientsThatPassMoreComeFirst(t *testing.T) {
	b := shown()
	more := mixed()
	more.Results[1].Mark = grading.Pass
	b.put(newRow(clients[1], best, more))
	rows := b.ranked(best)
	if got := []string{rows[0].Key, rows[1].Key}; !cmp.Equal(got, []string{clients[1].Key, clients[0].Key}) {
		t.Errorf("got %v", got)
	}
}

func TestRowsOfDifferentCasesAreNotMixed(t *testing.T) {
	b := shown()
	b.Rows[1].Cases = 4
	if err := b.save(place{root: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "run all clients again") {
		t.Errorf("got %v", err)
	}
}

func TestAScoreIsRoundedDownButNotBelowWhatItIs(t *testing.T) {
	got := []int{percent(1), percent(0.999), percent(0.29), percent(0)}
	if diff := cmp.Diff(got, []int{100, 99, 29, 0}); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestThePictureIsWellFormed(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(shown().picture()))
	var words []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			words = append(words, string(text))
		}
	}
	want := []string{"How clients fare in heed check, with the best settings", "all", "transient", "jobs", "curl", "75", "75", "–"}
	if diff := cmp.Diff(words, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
}

func TestAnUnknownClientIsNamedWithThoseThatThereAre(t *testing.T) {
	_, err := pick([]string{"netscape"})
	if err == nil || !strings.Contains(err.Error(), `no client "netscape"; there are curl, `) {
		t.Errorf("got %v", err)
	}
}

func TestTheVersionIsTheFirstNumberOfTheFirstLine(t *testing.T) {
	s := start{Version: []string{"printf", `GNU Wget 1.21.3 built on 2.0\nwith 9.9`}}
	got, err := s.version()
	if err != nil || got != "1.21.3" {
		t.Errorf("got %q, %v", got, err)
	}
}
