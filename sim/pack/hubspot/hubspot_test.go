package hubspot_test

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

const (
	contacts = "/crm/v3/objects/contacts"
	ada      = `{"properties":{"email":"ada@example.org","firstname":"Ada"}}`
)

type contact struct {
	ID         string
	Properties map[string]string
}

func (r *rig) create(body string) (c contact) {
	r.T.Helper()
	r.ask("POST", contacts, body).Into(&c)
	return c
}

func TestAContactIsFoundByItsIDAndItsAddress(t *testing.T) {
	r := open(t, sim.World{})
	c := r.create(ada)
	var byID, byAddress contact
	r.ask("GET", contacts+"/"+c.ID+"?properties=email", "").Into(&byID)
	r.ask("GET", contacts+"/Ada@example.org?idProperty=email&properties=email", "").Into(&byAddress)
	want := contact{c.ID, map[string]string{"email": "ada@example.org"}}
	if diff := cmp.Diff([]contact{byID, byAddress}, []contact{want, want}); diff != "" {
		t.Error(diff)
	}
}

func TestASecondContactWithAnAddressIsAConflict(t *testing.T) {
	r := open(t, sim.World{})
	c := r.create(ada)
	w := r.ask("POST", contacts, ada)
	if told(w) != "409 CONFLICT" || !strings.Contains(w.Body, "Existing ID: "+c.ID) {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
}

func TestAnUpdateMovesTheAddress(t *testing.T) {
	r := open(t, sim.World{})
	c := r.create(ada)
	r.ask("PATCH", contacts+"/"+c.ID, `{"properties":{"email":"lovelace@example.org"}}`)
	got := []int{
		r.ask("GET", contacts+"/ada@example.org?idProperty=email", "").Status,
		r.ask("GET", contacts+"/lovelace@example.org?idProperty=email", "").Status,
		r.ask("POST", contacts, ada).Status,
	}
	if diff := cmp.Diff(got, []int{404, 200, 201}); diff != "" {
		t.Error(diff)
	}
}

func TestAContactCanBeArchivedTwice(t *testing.T) {
	r := open(t, sim.World{})
	got := []int{
		r.ask("DELETE", contacts+"/1", "").Status, r.ask("DELETE", contacts+"/1", "").Status, r.ask("GET", contacts+"/1", "").Status,
	}
	if diff := cmp.Diff(got, []int{204, 204, 404}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotAnAddressIsRefused(t *testing.T) {
	r := open(t, sim.World{})
	if got := told(r.ask("POST", contacts, `{"properties":{"email":"nobody"}}`)); got != "400 VALIDATION_ERROR" {
		t.Errorf("got %q", got)
	}
}

type page struct {
	Total   int
	Results []contact
	Paging  *struct{ Next struct{ After string } }
	Errors  []struct{ Category string }
	Num     int `json:"numErrors"`
}

func TestAListEndsWithoutPaging(t *testing.T) {
	r := open(t, sim.World{})
	var sizes []int
	after := ""
	for {
		var p page
		r.ask("GET", contacts+"?limit=20&after="+after, "").Into(&p)
		sizes = append(sizes, len(p.Results))
		if p.Paging == nil {
			break
		}
		after = p.Paging.Next.After
	}
	if diff := cmp.Diff(sizes, []int{20, 10}); diff != "" {
		t.Error(diff)
	}
}

func (r *rig) search(body string) (p page) {
	r.T.Helper()
	r.ask("POST", contacts+"/search", body).Into(&p)
	return p
}

func TestASearchFindsAContactSomeTimeAfterItWasWritten(t *testing.T) {
	r := open(t, sim.World{})
	r.create(ada)
	const q = `{"filterGroups":[{"filters":[{"propertyName":"email","operator":"EQ","value":"ada@example.org"}]}]}`
	got := []int{r.search(q).Total}
	r.Advance(2 * time.Second)
	got = append(got, r.search(q).Total)
	if diff := cmp.Diff(got, []int{0, 1}); diff != "" {
		t.Error(diff)
	}
}

func TestASearchGoesOnAfterANumberAndEndsAtTenThousand(t *testing.T) {
	r := open(t, sim.World{})
	first := r.search(`{"limit":20}`)
	second := r.search(`{"limit":20,"after":"` + first.Paging.Next.After + `"}`)
	if first.Total != 30 || len(first.Results) != 20 || len(second.Results) != 10 || second.Paging != nil {
		t.Errorf("got %+v, then %+v", first, second)
	}
	if got := told(r.ask("POST", contacts+"/search", `{"limit":20,"after":"9990"}`)); got != "400 VALIDATION_ERROR" {
		t.Errorf("got %q", got)
	}
}

func TestFiltersOfAGroupMustAllHoldAndOneGroupIsEnough(t *testing.T) {
	r := open(t, sim.World{})
	for q, want := range map[string]int{
		`{"filterGroups":[{"filters":[{"propertyName":"lastname","operator":"EQ","value":"3"},{"propertyName":"firstname","operator":"EQ","value":"Ada"}]}]}`:               0,
		`{"filterGroups":[{"filters":[{"propertyName":"lastname","operator":"EQ","value":"3"}]},{"filters":[{"propertyName":"lastname","operator":"IN","values":["4"]}]}]}`: 2,
		`{"query":"person30"}`: 1,
		`{"filterGroups":[{"filters":[{"propertyName":"email","operator":"CONTAINS_TOKEN","value":"person1*"}]}]}`: 11,
		`{"filterGroups":[{"filters":[{"propertyName":"phone","operator":"HAS_PROPERTY"}]}]}`:                      0,
	} {
		r.Advance(time.Second) // the limit of searches
		if got := r.search(q).Total; got != want {
			t.Errorf("%s: got %d, want %d", q, got, want)
		}
	}
}

func TestABatchOfWhichAPartFailsIs207(t *testing.T) {
	r := open(t, sim.World{})
	whole := r.ask("POST", contacts+"/batch/create", `{"inputs":[`+ada+`]}`)
	part := r.ask("POST", contacts+"/batch/create", `{"inputs":[`+ada+`,{"properties":{"email":"b@example.org"}}]}`)
	var p page
	part.Into(&p)
	if whole.Status != 201 || part.Status != 207 || len(p.Results) != 1 || p.Num != 1 || p.Errors[0].Category != "CONFLICT" {
		t.Errorf("got %d, then %d %s", whole.Status, part.Status, part.Body)
	}
}

func TestABatchReadsUpdatesUpsertsAndArchives(t *testing.T) {
	r := open(t, sim.World{})
	var got []int
	for _, tt := range []struct{ verb, body string }{
		{"read", `{"inputs":[{"id":"1"},{"id":"2"}],"properties":["email"]}`},
		{"read", `{"inputs":[{"id":"1"},{"id":"99"}]}`},
		{"update", `{"inputs":[{"id":"1","properties":{"firstname":"New"}}]}`},
		{"upsert", `{"inputs":[{"id":"person1@example.org","idProperty":"email","properties":{"lastname":"One"}}]}`},
		{"upsert", `{"inputs":[{"id":"new@example.org","idProperty":"email"}]}`},
		{"archive", `{"inputs":[{"id":"2"},{"id":"99"}]}`},
		{"read", `{"inputs":[]}`},
	} {
		got = append(got, r.ask("POST", contacts+"/batch/"+tt.verb, tt.body).Status)
	}
	if diff := cmp.Diff(got, []int{200, 207, 200, 200, 201, 204, 400}); diff != "" {
		t.Error(diff)
	}
	var c contact
	r.ask("GET", contacts+"/1", "").Into(&c)
	if c.Properties["firstname"] != "New" || c.Properties["lastname"] != "One" {
		t.Errorf("got %v", c.Properties)
	}
}

// headers are those that tell of limits, as name: value.
func headers(w packtest.Answer) map[string]string {
	told := map[string]string{}
	for name := range w.Header {
		if short, ok := strings.CutPrefix(name, "X-Hubspot-Ratelimit-"); ok {
			told[short] = w.Header.Get(name)
		}
	}
	return told
}

func TestAPrivateAppIsToldOfTheDayAnOAuthAppIsNotAndASearchTellsNothing(t *testing.T) {
	r := open(t, sim.World{})
	if diff := cmp.Diff(headers(r.ask("GET", contacts+"/1", "")), map[string]string{
		"Max": "100", "Remaining": "99", "Interval-Milliseconds": "10000", "Daily": "250000", "Daily-Remaining": "249999",
	}); diff != "" {
		t.Error(diff)
	}
	app := r.Send("GET", contacts+"/1", "", "Authorization: Bearer "+r.token())
	if diff := cmp.Diff(headers(app), map[string]string{"Max": "100", "Remaining": "99", "Interval-Milliseconds": "10000"}); diff != "" {
		t.Error(diff)
	}
	if got := headers(r.ask("POST", contacts+"/search", `{}`)); len(got) != 0 {
		t.Errorf("a search: got %v", got)
	}
}

func TestOnlyTheBodySaysWhichLimitRefusedAndNothingSaysForHowLong(t *testing.T) {
	r := open(t, sim.World{})
	for range 100 {
		r.ask("GET", contacts+"/1", "")
	}
	w := r.ask("GET", contacts+"/1", "")
	if told(w) != "429 TEN_SECONDLY_ROLLING" || !strings.Contains(w.Body, "ten_secondly_rolling") || w.Header.Get("Retry-After") != "" {
		t.Errorf("got %d %v %s", w.Status, w.Header, w.Body)
	}
	r.Advance(20 * time.Second)
	if w := r.ask("GET", contacts+"/1", ""); w.Status != 200 {
		t.Errorf("later: got %d", w.Status)
	}
}

func TestSearchesHaveALimitOfTheirOwn(t *testing.T) {
	r := open(t, sim.World{})
	var w packtest.Answer
	for range 6 {
		w = r.ask("POST", contacts+"/search", `{}`)
	}
	if told(w) != "429 SECONDLY" {
		t.Errorf("got %d %s", w.Status, w.Body)
	}
	if w := r.ask("GET", contacts+"/1", ""); w.Status != 200 {
		t.Errorf("a read: got %d", w.Status)
	}
}

func TestTheDayEndsAtMidnightOfTheAccount(t *testing.T) {
	day := rate.Limit{Name: "DAILY", Kind: rate.Daily, Capacity: 2, Midnight: 5 * time.Hour, Scope: rate.Everyone}
	r := open(t, sim.World{Limits: []rate.Limit{day}, Clock: sim.Clock{Start: time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)}})
	ask := func() string {
		w := r.ask("GET", contacts+"/1", "")
		if w.Status == 429 {
			return told(w)
		}
		return strconv.Itoa(w.Status)
	}
	got := []string{ask(), ask(), ask()}
	r.Advance(time.Hour) // 05:00 in Greenwich is midnight in New York
	got = append(got, ask())
	if diff := cmp.Diff(got, []string{"200", "200", "429 DAILY", "200"}); diff != "" {
		t.Error(diff)
	}
}

// token is an access token of an OAuth app.
func (r *rig) token() string {
	r.T.Helper()
	var got struct {
		Access  string `json:"access_token"`
		Expires int    `json:"expires_in"`
	}
	r.Send("POST", "/oauth/v1/token", "grant_type=authorization_code&code=c").Into(&got)
	if got.Expires != 1800 {
		r.T.Errorf("expires_in: got %d", got.Expires)
	}
	return got.Access
}

func TestAnAccessTokenEndsAfterHalfAnHour(t *testing.T) {
	r := open(t, sim.World{})
	token := r.token()
	use := func() packtest.Answer { return r.Send("GET", contacts+"/1", "", "Authorization: Bearer "+token) }
	before := use().Status
	r.Advance(30 * time.Minute)
	if got := told(use()); before != 200 || got != "401 EXPIRED_AUTHENTICATION" {
		t.Errorf("got %d, then %q", before, got)
	}
	if got := told(r.Send("GET", contacts+"/1", "", "Authorization: Bearer made-up")); got != "401 INVALID_AUTHENTICATION" {
		t.Errorf("got %q", got)
	}
}

func TestTheAccountTellsItsTimeZone(t *testing.T) {
	r := open(t, sim.World{})
	var got struct{ TimeZone, UTCOffset string }
	r.ask("GET", "/account-info/v3/details", "").Into(&got)
	if got.TimeZone != "America/New_York" || got.UTCOffset != "-05:00" {
		t.Errorf("got %+v", got)
	}
}
