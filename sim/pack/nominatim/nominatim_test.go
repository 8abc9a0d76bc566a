package nominatim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/nominatim"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// atlas asks once a second: its clock moves on before every request.
type atlas struct{ *packtest.Client }

func open(t *testing.T, steps string) atlas {
	t.Helper()
	c := packtest.Serve(t, nominatim.Pack(), sim.World{Steps: steps, Records: 300})
	c.Header.Set("User-Agent", "atlas/1 (atlas@example.org)")
	return atlas{c}
}

func (a atlas) ask(path string, header ...string) packtest.Answer {
	a.T.Helper()
	a.Advance(time.Second)
	return a.Get(path, header...)
}

type place struct {
	ID       int `json:"place_id"`
	OSM      int `json:"osm_id"`
	Lat, Lon string
	Category string
	Class    string
	Display  string `json:"display_name"`
	Address  map[string]string
	Error    string
}

func places(a packtest.Answer) []place { return packtest.Read[[]place](a) }

func TestOneRequestASecondIsLetThrough(t *testing.T) {
	a := open(t, "")
	got := []int{a.ask("/search?q=germany").Status, a.Get("/search?q=germany").Status, a.ask("/search?q=germany").Status}
	if diff := cmp.Diff(got, []int{200, 429, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestTooManyIsHTMLAndSaysNothingOfTheTime(t *testing.T) {
	a := open(t, "")
	a.ask("/search?q=germany")
	r := a.Get("/search?q=germany")
	if r.Status != 429 || r.Header.Get("Content-Type") != "text/html" || r.Header.Get("Retry-After") != "" || !strings.HasPrefix(r.Body, "<html>") {
		t.Errorf("got %d %v %s", r.Status, r.Header, r.Body)
	}
}

func TestWhoGoesOnIsBannedForAnHour(t *testing.T) {
	a := open(t, "")
	a.ask("/search?q=germany")
	counts := map[int]int{}
	for range 30 {
		counts[a.Get("/search?q=germany").Status]++
	}
	if diff := cmp.Diff(counts, map[int]int{429: 10, 403: 20}); diff != "" {
		t.Error(diff)
	}
	if r := a.Get("/search?q=germany"); !strings.Contains(r.Body, "Access blocked") || r.Header.Get("Content-Type") != "text/html" {
		t.Errorf("got %v %s", r.Header, r.Body)
	}
	a.Advance(59 * time.Minute)
	before := a.Get("/search?q=germany").Status
	a.Advance(time.Minute)
	if after := a.Get("/search?q=germany").Status; before != 403 || after != 200 {
		t.Errorf("got %d before the hour is over, and %d then", before, after)
	}
}

func TestAllUsersOfAnApplicationShareItsSecond(t *testing.T) {
	a := open(t, "")
	got := []int{
		a.ask("/search?q=germany", "Authorization: Basic eDp5").Status,
		a.Get("/search?q=germany", "Authorization: Basic ejp6").Status,
		a.Get("/search?q=germany", "User-Agent: globe/2").Status,
	}
	if diff := cmp.Diff(got, []int{200, 429, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestTheNameOfALibraryIsNotThatOfAnApplication(t *testing.T) {
	a := open(t, "")
	for header, want := range map[string]int{"User-Agent: Go-http-client/1.1": 403, "User-Agent: python-requests/2.32": 403, "User-Agent: globe/2": 200} {
		if got := a.ask("/search?q=germany", header).Status; got != want {
			t.Errorf("%s: got %d, want %d", header, got, want)
		}
	}
	if got := a.ask("/search?q=germany", "User-Agent: Java/21", "Referer: https://globe.example/").Status; got != 200 {
		t.Errorf("with a Referer: got %d", got)
	}
}

func TestASearchFindsEveryWordAndAtMostTen(t *testing.T) {
	a := open(t, "")
	first := places(a.ask("/search?q=germany"))[0]
	found := places(a.ask("/search?q=" + strings.ReplaceAll(first.Display, " ", "+")))
	if len(places(a.ask("/search?q=germany"))) != 10 || len(found) == 0 || found[0].ID != first.ID {
		t.Errorf("got %+v, looked for %+v", found, first)
	}
}

func TestMoreThanFortyAreTrimmedWithoutAWord(t *testing.T) {
	if got := len(places(open(t, "").ask("/search?q=germany&limit=500"))); got != 40 {
		t.Errorf("got %d", got)
	}
}

func TestNothingFoundIsAnEmptyList(t *testing.T) {
	r := open(t, "").ask("/search?q=atlantis")
	if r.Status != 200 || strings.TrimSpace(r.Body) != "[]" {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

func TestTheFormatsDiffer(t *testing.T) {
	a := open(t, "")
	v1, v2 := places(a.ask("/search?q=germany&format=json"))[0], places(a.ask("/search?q=germany&addressdetails=1"))[0]
	if v1.Class != "highway" || v1.Category != "" || v2.Category != "highway" || v2.Class != "" || v1.Address != nil || v2.Address["country_code"] != "de" {
		t.Errorf("got %+v, then %+v", v1, v2)
	}
	geo := packtest.Read[struct {
		Type     string
		Features []struct{ Properties place }
	}](a.ask("/search?q=germany&format=geojson"))
	if geo.Type != "FeatureCollection" || geo.Features[0].Properties.ID != v1.ID {
		t.Errorf("got %+v", geo)
	}
}

type results struct {
	More   string `xml:"more_url,attr"`
	Places []struct {
		ID int `xml:"place_id,attr"`
	} `xml:"place"`
}

func TestMoreLeadsToEveryPlaceOnce(t *testing.T) {
	a := open(t, "")
	seen := map[int]bool{}
	for path := "/search?q=street&format=xml&limit=40"; path != ""; {
		r := packtest.ReadXML[results](a.ask(path))
		for _, p := range r.Places {
			if seen[p.ID] {
				t.Errorf("%d came twice", p.ID)
			}
			seen[p.ID] = true
		}
		path = strings.TrimPrefix(r.More, a.URL)
	}
	if len(seen) < 41 {
		t.Errorf("got %d places, want more than a page", len(seen))
	}
}

func TestReverseFindsTheNearest(t *testing.T) {
	got := packtest.Read[place](open(t, "").ask("/reverse?lat=50.101&lon=8.009&format=jsonv2"))
	if got.Lat != "50.1000000" || got.Lon != "8.0100000" {
		t.Errorf("got %+v", got)
	}
}

func TestReverseInTheSeaIsAnErrorWith200(t *testing.T) {
	a := open(t, "")
	json := a.ask("/reverse?lat=0&lon=0&format=jsonv2")
	if got := packtest.Read[place](json); json.Status != 200 || got.Error != "Unable to geocode" {
		t.Errorf("got %d %s", json.Status, json.Body)
	}
	xml := a.ask("/reverse?lat=0&lon=0")
	if got := packtest.ReadXML[struct {
		Error string `xml:"error"`
	}](xml); xml.Status != 200 || got.Error != "Unable to geocode" {
		t.Errorf("got %d %s", xml.Status, xml.Body)
	}
}

func TestAWrongRequestIsToldInItsFormat(t *testing.T) {
	a := open(t, "")
	for _, path := range []string{"/reverse?lat=x&lon=0&format=json", "/search", "/search?q=a&city=b", "/search?q=a&limit=x", "/search?q=a&format=csv",
		"/lookup?format=json", "/lookup?format=json&osm_ids=7"} {
		r := a.ask(path)
		got := packtest.Read[struct{ Error struct{ Code int } }](r)
		if r.Status != 400 || got.Error.Code != 400 {
			t.Errorf("%s: got %d %s", path, r.Status, r.Body)
		}
	}
	r := a.ask("/reverse?lat=x&lon=0")
	if got := packtest.ReadXML[struct {
		Code int `xml:"code"`
	}](r); r.Status != 400 || got.Code != 400 {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

func TestALookupLeavesOutWhatIsNotThere(t *testing.T) {
	a := open(t, "")
	want := places(a.ask("/search?q=germany"))[0]
	got := places(a.ask(fmt.Sprintf("/lookup?format=json&osm_ids=W%d,N1,W999", want.OSM)))
	if len(got) != 1 || got[0].ID != want.ID {
		t.Errorf("got %+v", got)
	}
}

func TestASearchUnderLoadIsPartialAndNothingShowsIt(t *testing.T) {
	a := open(t, "places.search: cut-valid")
	r := a.ask("/search?q=germany")
	if got := places(r); r.Status != 200 || len(got) != 5 {
		t.Errorf("got %d, %d places", r.Status, len(got))
	}
}

func TestTheServerFailsInPlainText(t *testing.T) {
	a := open(t, "places.search: 503, golden(a query that took too long)")
	for _, want := range []string{"Search temporarily unavailable", "Query took too long to process."} {
		r := a.ask("/search?q=germany")
		if r.Status != 503 || r.Body != want || r.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("got %d %v %s", r.Status, r.Header, r.Body)
		}
	}
}

func TestABadStateIs200InJSONAnd500AsText(t *testing.T) {
	a := open(t, "server.status: ok x2, golden(a database in a bad state), golden(a database in a bad state, as text)")
	var got []string
	for _, path := range []string{"/status", "/status?format=json", "/status?format=json", "/status"} {
		r := a.ask(path)
		got = append(got, fmt.Sprint(r.Status, " ", strings.Contains(r.Body, "OK")))
	}
	if diff := cmp.Diff(got, []string{"200 true", "200 true", "200 false", "500 false"}); diff != "" {
		t.Error(diff)
	}
}

func TestOtherGeocodersAnswerByTheirGoldenExchanges(t *testing.T) {
	a := open(t, "places.search: golden(Google, too many), golden(Mapbox, too many)")
	google, mapbox := a.ask("/search?q=x"), a.ask("/search?q=x")
	if google.Status != 200 || !strings.Contains(google.Body, "OVER_QUERY_LIMIT") || mapbox.Status != 429 || mapbox.Header.Get("X-Rate-Limit-Reset") == "" {
		t.Errorf("got %d %s, then %d %v", google.Status, google.Body, mapbox.Status, mapbox.Header)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	r := open(t, "").ask("/details?place_id=1&format=json")
	if r.Status != 404 || !strings.Contains(r.Body, "GET /reverse") {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}
