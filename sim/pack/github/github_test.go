package github_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/rate"
)

const issues = "/repos/octo/heed/issues"

type issue struct {
	Number   int
	Title    string
	State    string
	Comments int
}

func (r *rig) get(n int) (i issue) {
	r.T.Helper()
	r.ask("GET", issues+"/"+strconv.Itoa(n), "").Into(&i)
	return i
}

func TestAnIssueIsOpenedCommentedAndClosed(t *testing.T) {
	r := open(t, sim.World{})
	made := r.ask("POST", issues, `{"title":"A leak","labels":["wet",{"name":"old"}]}`)
	r.ask("POST", issues+"/66/comments", `{"body":"still"}`)
	r.ask("PATCH", issues+"/66", `{"state":"closed"}`)
	if got, want := r.get(66), (issue{66, "A leak", "closed", 1}); made.Status != 201 || got != want {
		t.Errorf("got %d, %+v, want %+v", made.Status, got, want)
	}
	var comments []struct{ Body string }
	r.ask("GET", issues+"/66/comments", "").Into(&comments)
	if len(comments) != 1 || comments[0].Body != "still" {
		t.Errorf("got %+v", comments)
	}
}

func TestAnIssueWithoutATitleIsNotValid(t *testing.T) {
	r := open(t, sim.World{})
	w := r.ask("POST", issues, `{"body":"x"}`)
	var got struct {
		Errors []struct{ Field, Code string }
	}
	w.Into(&got)
	if w.Status != 422 || len(got.Errors) != 1 || got.Errors[0].Field != "title" || got.Errors[0].Code != "missing_field" {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestAnIssueThatIsOpenedTwiceIsARepeatedEffect(t *testing.T) {
	r := open(t, sim.World{Steps: "issues.create: commit-then-504"})
	for range 2 {
		r.ask("POST", issues, `{"title":"A leak"}`)
	}
	if got, want := r.Case.Effects().Kinds["issue"], (sim.Effect{Count: 2, Repeated: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// next is the URL that Link has for a relation, relative to the server.
func (r *rig) link(w packtest.Answer, rel string) string {
	for one := range strings.SplitSeq(w.Header.Get("Link"), ", ") {
		if u, ok := strings.CutSuffix(one, `>; rel="`+rel+`"`); ok {
			return strings.TrimPrefix(u, "<"+r.URL)
		}
	}
	return ""
}

func TestAListIsFollowedByItsLinks(t *testing.T) {
	r := open(t, sim.World{})
	var sizes []int
	for path := issues + "?per_page=30&state=all"; path != ""; {
		w := r.ask("GET", path, "")
		var page []issue
		w.Into(&page)
		sizes = append(sizes, len(page))
		path = r.link(w, "next")
	}
	if diff := cmp.Diff(sizes, []int{30, 30, 5}); diff != "" {
		t.Error(diff)
	}
}

func TestThePrimaryLimitIs403WithNothingLeftUntilTheHourEnds(t *testing.T) {
	r := open(t, sim.World{
		Limits: []rate.Limit{{Name: "core", Kind: rate.FixedWindow, Capacity: 2, Window: time.Hour, Weighted: true, Routes: []string{"* /repos/**"}}},
		Clock:  sim.Clock{Start: packtest.Noon.Add(30 * time.Minute)},
	})
	one := strconv.FormatInt(packtest.Noon.Add(time.Hour).Unix(), 10)
	got := []string{quota(r.ask("GET", issues, "")), quota(r.ask("GET", issues, ""))}
	w := r.ask("GET", issues, "")
	got = append(got, quota(w), strconv.Itoa(w.Status)+" "+message(w), w.Header.Get("Retry-After"))
	r.Advance(30 * time.Minute)
	got = append(got, strconv.Itoa(r.ask("GET", issues, "").Status))
	if diff := cmp.Diff(got, []string{
		"core 1/2 until " + one, "core 0/2 until " + one, "core 0/2 until " + one,
		"403 API rate limit exceeded for user ID 1.", "", "200",
	}); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutATokenSixtyRequestsAnHourAreTold(t *testing.T) {
	r := open(t, sim.World{})
	var last string
	for range 60 {
		last = quota(r.Send("GET", issues+"/1", ""))
	}
	w := r.Send("GET", issues+"/1", "")
	if !strings.HasPrefix(last, "core 0/60 ") || w.Status != 403 || !strings.HasPrefix(quota(w), "core 0/60 ") {
		t.Errorf("got %q, then %d %q", last, w.Status, quota(w))
	}
	if got := quota(r.ask("GET", issues+"/1", "")); !strings.HasPrefix(got, "core 4999/5000 ") {
		t.Errorf("with a token: got %q", got)
	}
}

func TestWhatDidNotChangeIs304AndCostsNothing(t *testing.T) {
	r := open(t, sim.World{})
	first := r.ask("GET", issues+"/1", "")
	same := "If-None-Match: " + first.Header.Get("Etag")
	again := r.ask("GET", issues+"/1", "", same)
	r.ask("PATCH", issues+"/1", `{"title":"New"}`)
	changed := r.ask("GET", issues+"/1", "", same)
	var got []string
	for _, w := range []packtest.Answer{first, again, changed} {
		left, _, _ := strings.Cut(quota(w), "/")
		got = append(got, strconv.Itoa(w.Status)+" "+left+" "+strconv.FormatBool(w.Body == ""))
	}
	// The change of the title is the fourth request.
	if diff := cmp.Diff(got, []string{"200 core 4999 false", "304 core 4999 true", "200 core 4997 false"}); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutATokenEven304Costs(t *testing.T) {
	r := open(t, sim.World{})
	tag := r.Send("GET", issues+"/1", "").Header.Get("Etag")
	w := r.Send("GET", issues+"/1", "", "If-None-Match: "+tag)
	if w.Status != 304 || !strings.HasPrefix(quota(w), "core 58/60 ") {
		t.Errorf("got %d %q", w.Status, quota(w))
	}
}

func TestASecondaryLimitHasMuchLeftAndABanForThoseWhoGoOn(t *testing.T) {
	r := open(t, sim.World{})
	open := func() packtest.Answer { return r.ask("POST", issues, `{"title":"x"}`) }
	var w packtest.Answer
	for range 81 {
		w = open()
	}
	if !strings.HasPrefix(quota(w), "core 4920/5000 ") || w.Header.Get("Retry-After") != "60" || w.Status != 403 ||
		!strings.Contains(message(w), "secondary rate limit") || !strings.Contains(w.Body, "#about-secondary-rate-limits") {
		t.Errorf("got %d %v %s", w.Status, w.Header, w.Body)
	}
	r.Advance(2 * time.Second)
	if w := open(); w.Header.Get("Retry-After") != "120" {
		t.Errorf("too early: got %q", w.Header.Get("Retry-After"))
	}
	for range 9 {
		r.Advance(2 * time.Second)
		w = open()
	}
	if w.Header.Get("Retry-After") != "3600" {
		t.Errorf("after ten: got %q", w.Header.Get("Retry-After"))
	}
}

func TestASearchHasALimitOfItsOwn(t *testing.T) {
	r := open(t, sim.World{})
	var w packtest.Answer
	for range 31 {
		w = r.ask("GET", "/search/issues?q=drips+repo:octo/heed", "")
	}
	if w.Status != 403 || !strings.HasPrefix(quota(w), "search 0/30 ") {
		t.Errorf("got %d %q", w.Status, quota(w))
	}
	if got := quota(r.ask("GET", issues+"/1", "")); !strings.HasPrefix(got, "core 4999/5000 ") {
		t.Errorf("another resource: got %q", got)
	}
}

func TestASearchWithoutARepositoryIsIncomplete(t *testing.T) {
	r := open(t, sim.World{})
	for q, want := range map[string]string{
		"drips+repo:octo/heed":        "65 false 65",
		"drips":                       "65 true 32",
		"Gauge+3+repo:octo/heed":      "16 false 16",
		"repo:octo/heed+is:closed":    "0 false 0",
		"repo:octo/other":             "0 false 0",
		"repo:octo/heed+state:open+7": "6 false 6",
	} {
		var got struct {
			Total      int  `json:"total_count"`
			Incomplete bool `json:"incomplete_results"`
			Items      []issue
		}
		r.ask("GET", "/search/issues?per_page=100&q="+q, "").Into(&got)
		if s := strconv.Itoa(got.Total) + " " + strconv.FormatBool(got.Incomplete) + " " + strconv.Itoa(len(got.Items)); s != want {
			t.Errorf("%s: got %s, want %s", q, s, want)
		}
	}
}

func TestASearchEndsAtAThousand(t *testing.T) {
	r := open(t, sim.World{})
	if w := r.ask("GET", "/search/issues?q=x&per_page=100&page=11", ""); w.Status != 422 || !strings.Contains(w.Body, "first 1000") {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestStatisticsAndForksTakeTime(t *testing.T) {
	r := open(t, sim.World{})
	got := []int{
		r.ask("GET", "/repos/octo/heed/stats/contributors", "").Status,
		r.ask("POST", "/repos/octo/heed/forks", "").Status,
		r.ask("GET", "/repos/me/heed", "").Status,
	}
	r.Advance(2 * time.Second)
	got = append(got, r.ask("GET", "/repos/octo/heed/stats/contributors", "").Status, r.ask("GET", "/repos/me/heed", "").Status)
	if diff := cmp.Diff(got, []int{202, 202, 404, 200, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestCredentialsThatAreWrongTooOftenShutGoodOnesOut(t *testing.T) {
	r := open(t, sim.World{})
	var got []int
	for range 10 {
		got = append(got, r.Send("GET", "/user", "", "Authorization: Bearer nothing").Status)
	}
	good := r.ask("GET", "/user", "")
	if got[9] != 401 || good.Status != 403 || !strings.Contains(good.Body, "login attempts") {
		t.Errorf("got %v, then %d %s", got, good.Status, good.Body)
	}
	r.Advance(time.Minute)
	if w := r.ask("GET", "/user", ""); w.Status != 200 {
		t.Errorf("a minute later: got %d", w.Status)
	}
}

func TestWhoHasNoTokenMayReadAndNotWrite(t *testing.T) {
	r := open(t, sim.World{})
	got := []int{r.Send("GET", issues, "").Status, r.Send("POST", issues, `{"title":"x"}`).Status, r.Send("GET", "/user", "").Status}
	if diff := cmp.Diff(got, []int{200, 401, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestARepositoryIsMadeOnce(t *testing.T) {
	r := open(t, sim.World{})
	make := func() int { return r.ask("POST", "/user/repos", `{"name":"new"}`).Status }
	got := []int{make(), make(), r.ask("GET", "/repos/octo/NEW", "").Status, r.ask("POST", "/user/repos", `{}`).Status}
	if diff := cmp.Diff(got, []int{201, 422, 200, 422}); diff != "" {
		t.Error(diff)
	}
	var all []struct{ Name string }
	r.ask("GET", "/user/repos", "").Into(&all)
	if len(all) != 2 {
		t.Errorf("got %+v", all)
	}
}

func TestTheLimitsAreToldForNothing(t *testing.T) {
	r := open(t, sim.World{})
	r.ask("GET", issues, "")
	var got struct {
		Resources map[string]struct{ Limit, Remaining int }
	}
	for range 2 {
		r.ask("GET", "/rate_limit", "").Into(&got)
	}
	if got.Resources["core"].Remaining != 4999 || got.Resources["search"].Limit != 30 || got.Resources["graphql"].Limit != 5000 {
		t.Errorf("got %+v", got)
	}
}
