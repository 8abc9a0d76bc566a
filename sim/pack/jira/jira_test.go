package jira_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
)

const leak = `{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Bug"},"summary":"The gauge leaks","labels":["wet"]}}`

type issue struct {
	ID, Key string
	Fields  struct {
		Summary string
		Status  struct{ Name string }
	}
}

func (r *rig) create(body string) (i issue) {
	r.T.Helper()
	r.ask("POST", "/issue", body).Into(&i)
	return i
}

func (r *rig) get(name string) (i issue) {
	r.T.Helper()
	r.ask("GET", "/issue/"+name, "").Into(&i)
	return i
}

func TestAnIssueIsFoundByItsIDAndItsKey(t *testing.T) {
	r := open(t, sim.World{})
	made := r.create(leak)
	byID, byKey := r.get(made.ID), r.get(made.Key)
	if diff := cmp.Diff(byID, byKey); diff != "" || made.Key != "OPS-1" || byID.Fields.Summary != "The gauge leaks" {
		t.Errorf("got %+v, %+v, %s", made, byID, diff)
	}
}

func TestAnEditIsSeenAndADeletedIssueIsGone(t *testing.T) {
	r := open(t, sim.World{})
	var got []string
	got = append(got, strconv.Itoa(r.ask("PUT", "/issue/HEED-1", `{"fields":{"summary":"New"}}`).Status), r.get("HEED-1").Fields.Summary)
	got = append(got, strconv.Itoa(r.ask("DELETE", "/issue/HEED-1", "").Status), strconv.Itoa(r.ask("GET", "/issue/HEED-1", "").Status))
	if diff := cmp.Diff(got, []string{"204", "New", "204", "404"}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrongWithAnIssueIsToldByField(t *testing.T) {
	r := open(t, sim.World{})
	for _, tt := range []struct{ body, want string }{
		{`{"fields":{"project":{"key":"OPS"},"issuetype":{"name":"Bug"}}}`, "400 summary "},
		{`{"fields":{"summary":"x"}}`, "400 issuetype project "},
		{`{"fields":{"summary":"x","project":{"key":"NONE"},"issuetype":{}}}`, "400 project "},
	} {
		if got := told(r.ask("POST", "/issue", tt.body)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.body, got, tt.want)
		}
	}
}

func TestOfManyIssuesSomeFailAndTheStatusIs201(t *testing.T) {
	r := open(t, sim.World{})
	w := r.ask("POST", "/issue/bulk", `{"issueUpdates":[`+leak+`,{"fields":{}},`+leak+`]}`)
	var got struct {
		Issues []issue
		Errors []struct {
			Status int
			Number int `json:"failedElementNumber"`
		}
	}
	w.Into(&got)
	if w.Status != 201 || len(got.Issues) != 2 || len(got.Errors) != 1 || got.Errors[0].Number != 1 || got.Errors[0].Status != 400 {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestAnIssueThatIsMadeTwiceIsARepeatedEffect(t *testing.T) {
	r := open(t, sim.World{Steps: "issues.create: commit-then-504"})
	r.ask("POST", "/issue", leak)
	r.ask("POST", "/issue", leak)
	if got, want := r.Case.Effects().Kinds["issue"], (sim.Effect{Count: 2, Repeated: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAnIssueGoesOnlyTheWaysOfItsStatus(t *testing.T) {
	r := open(t, sim.World{})
	do := func(id string) int {
		return r.ask("POST", "/issue/HEED-2/transitions", `{"transition":{"id":"`+id+`"}}`).Status
	}
	got := []int{do("31"), do("21"), do("31"), do("31")}
	if diff := cmp.Diff(got, []int{400, 204, 204, 400}); diff != "" {
		t.Error(diff)
	}
	if got := r.get("HEED-2").Fields.Status.Name; got != "Done" {
		t.Errorf("got %q", got)
	}
	var ways struct {
		Transitions []struct{ ID string }
	}
	r.ask("GET", "/issue/HEED-2/transitions", "").Into(&ways)
	if len(ways.Transitions) != 1 || ways.Transitions[0].ID != "41" {
		t.Errorf("got %+v", ways)
	}
}

func TestCommentsAreListedInOrder(t *testing.T) {
	r := open(t, sim.World{})
	for _, text := range []string{"one", "two", "three"} {
		r.ask("POST", "/issue/HEED-3/comment", `{"body":"`+text+`"}`)
	}
	var got struct {
		Total    int
		Comments []struct{ Body string }
	}
	r.ask("GET", "/issue/HEED-3/comment?startAt=1&maxResults=1", "").Into(&got)
	if got.Total != 3 || len(got.Comments) != 1 || got.Comments[0].Body != "two" {
		t.Errorf("got %+v", got)
	}
}

type page struct {
	Issues []issue
	Token  string `json:"nextPageToken"`
	Last   bool   `json:"isLast"`
	Total  *int
}

func TestASearchGoesOnByTokenAndHasNoTotal(t *testing.T) {
	r := open(t, sim.World{})
	var sizes []int
	token := ""
	for {
		var p page
		r.ask("GET", "/search/jql?jql=project=HEED&fields=summary&maxResults=50&nextPageToken="+token, "").Into(&p)
		sizes = append(sizes, len(p.Issues))
		if p.Total != nil {
			t.Fatalf("got a total of %d", *p.Total)
		}
		if token = p.Token; p.Last {
			break
		}
	}
	if diff := cmp.Diff(sizes, []int{50, 50, 20}); diff != "" || token != "" {
		t.Errorf("%s, token %q", diff, token)
	}
}

func TestASearchGivesAtMostAHundredWithFieldsAndIDsAloneWithout(t *testing.T) {
	r := open(t, sim.World{})
	var with, without page
	r.ask("POST", "/search/jql", `{"jql":"project = HEED","fields":["summary"],"maxResults":1000}`).Into(&with)
	r.ask("POST", "/search/jql", `{"jql":"project = HEED","maxResults":1000}`).Into(&without)
	if len(with.Issues) != 100 || len(without.Issues) != 120 || without.Issues[0].Key != "" {
		t.Errorf("got %d and %d, %+v", len(with.Issues), len(without.Issues), without.Issues[0])
	}
}

func TestAQueryFindsWhatItsConditionsSay(t *testing.T) {
	r := open(t, sim.World{})
	r.create(leak)
	for jql, want := range map[string]string{
		`project = OPS AND summary ~ "LEAKS"`: "OPS-1",
		`labels = wet and status != Done`:     "OPS-1",
		`key = HEED-7`:                        "HEED-7",
		`project = HEED ORDER BY key DESC`:    "HEED-120",
		`project != HEED order by created`:    "OPS-1",
		`assignee = nobody`:                   "",
	} {
		var p page
		r.ask("POST", "/search/jql", `{"jql":`+strconv.Quote(jql)+`,"fields":["*all"],"maxResults":1}`).Into(&p)
		got := ""
		if len(p.Issues) > 0 {
			got = p.Issues[0].Key
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", jql, got, want)
		}
	}
}

func TestAQueryThatCannotBeRunIsRefused(t *testing.T) {
	r := open(t, sim.World{})
	for jql, want := range map[string]string{
		"":                              "Unbounded",
		"ORDER BY created":              "Unbounded",
		"colour = red":                  "colour",
		"project in (HEED)":             "project in (HEED)",
		"project = HEED ORDER BY votes": "votes",
	} {
		w := r.ask("POST", "/search/jql", `{"jql":`+strconv.Quote(jql)+`}`)
		if w.Status != 400 || !strings.Contains(w.Body, want) {
			t.Errorf("%q: got %d %s", jql, w.Status, w.Body)
		}
	}
}

func TestTheSearchOfBeforeIsGone(t *testing.T) {
	r := open(t, sim.World{})
	if w := r.ask("GET", "/search?jql=project=HEED", ""); w.Status != 410 || !strings.Contains(w.Body, "/search/jql") {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestTheServerLowersMaxResults(t *testing.T) {
	r := open(t, sim.World{})
	var got struct {
		Most   int `json:"maxResults"`
		Total  int
		IsLast bool
		Values []struct{ Key string }
	}
	r.ask("GET", "/project/search?maxResults=50", "").Into(&got)
	if got.Most != 2 || got.Total != 3 || got.IsLast || len(got.Values) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestEachEndpointAndMethodHasABurstOfItsOwn(t *testing.T) {
	r := open(t, sim.World{})
	var w packtest.Answer
	for range 101 {
		w = r.ask("GET", "/issue/HEED-1", "")
	}
	got := []string{strconv.Itoa(w.Status), w.Header.Get("Ratelimit-Reason"), w.Header.Get("Retry-After"),
		w.Header.Get("X-Ratelimit-Limit"), w.Header.Get("X-Ratelimit-Remaining"), w.Header.Get("X-Ratelimit-Reset")}
	if diff := cmp.Diff(got, []string{"429", "jira-burst-based", "1", "100", "0", ""}); diff != "" {
		t.Error(diff)
	}
	if w := r.ask("GET", "/myself", ""); w.Status != 200 {
		t.Errorf("another endpoint: got %d", w.Status)
	}
	r.Advance(time.Second)
	if w := r.ask("GET", "/issue/HEED-1", ""); w.Status != 200 {
		t.Errorf("a second later: got %d", w.Status)
	}
}

func TestOneIssueTakesTwentyWritesInTwoSecondsAndTheNextOneIsOpen(t *testing.T) {
	r := open(t, sim.World{})
	var w packtest.Answer
	for range 21 {
		w = r.ask("PUT", "/issue/HEED-1", `{"fields":{"summary":"x"}}`)
	}
	if w.Status != 429 || w.Header.Get("Ratelimit-Reason") != "jira-per-issue-on-write" || w.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %v", w.Status, w.Header)
	}
	if w := r.ask("PUT", "/issue/HEED-2", `{"fields":{"summary":"x"}}`); w.Status != 204 {
		t.Errorf("another issue: got %d", w.Status)
	}
}

func TestAnAppIsToldOfItsPointsAndATokenIsNot(t *testing.T) {
	r := open(t, sim.World{})
	app := r.asApp()
	w := app("GET", "/myself", "")
	const want = `"global-app-quota";q=65000;w=3600, "tenant-app-quota";q=100000;w=3600`
	left := w.Header.Get("Ratelimit")
	if got := w.Header.Get("Ratelimit-Policy"); got != want || !strings.HasPrefix(left, `"global-app-quota";t=`) {
		t.Errorf("got %q, %q", got, left)
	}
	if got := r.ask("GET", "/myself", "").Header.Get("Ratelimit"); got != "" {
		t.Errorf("an API token: got %q", got)
	}
}

func TestTheEndOfTheHourIsTold(t *testing.T) {
	r := open(t, sim.World{Clock: sim.Clock{Start: time.Date(2026, 1, 1, 1, 0, 1, 0, time.UTC)}})
	app := r.asApp()
	keys := `{"selectedIssueIdsOrKeys":[` + strings.TrimSuffix(strings.Repeat(`"NONE-1",`, 1000), ",") + `]}`
	var w packtest.Answer
	for range 65 { // 1000 points each
		w = app("POST", "/bulk/issues/delete", keys)
	}
	if got := w.Header.Get("Ratelimit"); w.Status != 201 || w.Header.Get("X-Ratelimit-Nearlimit") != "true" ||
		got != `"global-app-quota";r=0;t=3599, "tenant-app-quota";t=3599` {
		t.Errorf("got %d, %q", w.Status, got)
	}
	w = app("GET", "/myself", "")
	got := []string{strconv.Itoa(w.Status), w.Header.Get("Ratelimit-Reason"), w.Header.Get("X-Ratelimit-Reset"),
		w.Header.Get("X-Ratelimit-Limit"), w.Header.Get("X-Ratelimit-Remaining")}
	if diff := cmp.Diff(got, []string{"429", "jira-quota-global-based", "2026-01-01T02:00:00Z", "65000", "0"}); diff != "" {
		t.Error(diff)
	}
	if w := r.ask("GET", "/myself", ""); w.Status != 200 {
		t.Errorf("an API token: got %d", w.Status)
	}
}

func TestARefreshTokenIsGoodOnceAndAnAccessTokenForAnHour(t *testing.T) {
	r := open(t, sim.World{})
	first := r.grant(`{"grant_type":"authorization_code","client_id":"app","code":"c"}`)
	refresh := `{"grant_type":"refresh_token","client_id":"app","refresh_token":"` + first.Refresh + `"}`
	second, third := r.grant(refresh), r.grant(refresh)
	if second.Access == "" || second.Access == first.Access || third.Error != "invalid_grant" {
		t.Errorf("got %+v, then %+v", second, third)
	}
	use := func() int {
		return r.Send("GET", base+"/myself", "", "Authorization: Bearer "+second.Access).Status
	}
	got := []int{use()}
	r.Advance(time.Hour)
	got = append(got, use())
	if diff := cmp.Diff(got, []int{200, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutACredentialThatIsKnownNobodyGetsIn(t *testing.T) {
	r := open(t, sim.World{})
	for _, key := range []string{"", "Bearer made-up", "Basic bWU6dG9rZW4="} {
		if w := r.Send("GET", base+"/myself", "", "Authorization: "+key); w.Status != 401 || !strings.Contains(w.Body, `"code":401`) {
			t.Errorf("%q: got %d %s", key, w.Status, w.Body)
		}
	}
}

func TestABulkDeletionIsQueuedThenRunsThenIsComplete(t *testing.T) {
	r := open(t, sim.World{})
	var task struct{ TaskID string }
	r.ask("POST", "/bulk/issues/delete", `{"selectedIssueIdsOrKeys":["HEED-1","NONE-9"]}`).Into(&task)
	type state struct {
		Status    string
		Processed []string `json:"processedAccessibleIssues"`
		Invalid   int      `json:"invalidOrInaccessibleIssueCount"`
	}
	var got []string
	var now state
	for range 3 {
		r.ask("GET", "/bulk/queue/"+task.TaskID, "").Into(&now)
		got = append(got, now.Status)
		r.Advance(2 * time.Second)
	}
	if diff := cmp.Diff(got, []string{"ENQUEUED", "RUNNING", "COMPLETE"}); diff != "" || len(now.Processed) != 1 || now.Invalid != 1 {
		t.Errorf("%s, %+v", diff, now)
	}
	if w := r.ask("GET", "/issue/HEED-1", ""); w.Status != 404 {
		t.Errorf("got %d", w.Status)
	}
}

func TestTheWrongSiteIsALoginPageWith200(t *testing.T) {
	r := open(t, sim.World{Steps: "issues.get: envelope"})
	w := r.ask("GET", "/issue/HEED-1", "")
	if w.Status != 200 || !strings.HasPrefix(w.Header.Get("Content-Type"), "text/html") || !strings.Contains(w.Body, "Log in") {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}
