package sierra_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/sierra"
)

// library is a Sierra on loopback whose clock stands still, and a client of it.
type library struct {
	t     *testing.T
	api   *sim.API
	url   string
	token string
}

func open(t *testing.T, steps string) *library {
	t.Helper()
	a, err := sim.New(sim.World{Packs: []sim.Pack{sierra.Pack()}, Steps: steps, Records: 60,
		Clock: sim.Clock{Stepped: true, Start: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a)
	t.Cleanup(srv.Close)
	l := &library{t: t, api: a, url: srv.URL + "/iii/sierra-api/v6"}
	l.token = read[struct {
		Token string `json:"access_token"`
	}](l.login("key", "secret")).Token
	return l
}

type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (l *library) do(r *http.Request) answer {
	l.t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return answer{l.t, resp.StatusCode, resp.Header, string(body)}
}

func (l *library) request(method, path, body string) *http.Request {
	r, err := http.NewRequest(method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+l.token)
	return r
}

func (l *library) send(method, path, body string) answer {
	l.t.Helper()
	return l.do(l.request(method, path, body))
}

func (l *library) login(key, secret string) answer {
	l.t.Helper()
	r := l.request("POST", "/token", "grant_type=client_credentials")
	r.SetBasicAuth(key, secret)
	return l.do(r)
}

func read[T any](a answer) (v T) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		a.t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

// fault is an error as three numbers and a name.
func fault(a answer) string {
	a.t.Helper()
	f := read[struct {
		Code         int
		SpecificCode int
		HTTPStatus   int
		Name         string
	}](a)
	if f.HTTPStatus != a.status {
		a.t.Errorf("the body says %d, the status %d", f.HTTPStatus, a.status)
	}
	return strings.Join([]string{strconv.Itoa(a.status), strconv.Itoa(f.Code), strconv.Itoa(f.SpecificCode), f.Name}, " ")
}

type list struct {
	Total, Start int
	Entries      []map[string]any
}

func ids(a answer) (got []string) {
	a.t.Helper()
	for _, e := range read[list](a).Entries {
		got = append(got, e["id"].(string))
	}
	return got
}

func TestATokenLastsAnHour(t *testing.T) {
	l := open(t, "")
	l.api.Case("").Advance(time.Hour - 1)
	if a := l.send("GET", "/bibs", ""); a.status != 200 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	l.api.Case("").Advance(1)
	if got := fault(l.send("GET", "/bibs", "")); got != "401 123 0 Unauthorized" {
		t.Errorf("got %s", got)
	}
}

func TestATokenThatIsRevokedEarlyIsReplacedByAnother(t *testing.T) {
	l := open(t, "bibs.list: ok, expire")
	var got []int
	for range 3 {
		got = append(got, l.send("GET", "/bibs", "").status)
	}
	l.token = read[struct {
		Token string `json:"access_token"`
	}](l.login("key", "secret")).Token
	got = append(got, l.send("GET", "/bibs", "").status)
	if diff := cmp.Diff(got, []int{200, 401, 401, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutASecretThereIsNoToken(t *testing.T) {
	if got := fault(open(t, "").login("key", "")); got != "401 113 0 Unauthorized" {
		t.Errorf("got %s", got)
	}
}

func TestATokenMayComeEmpty(t *testing.T) {
	l := open(t, "tokens.create: ok, empty")
	if a := l.login("key", "secret"); a.status != 200 || a.body != "" {
		t.Errorf("got %d %q", a.status, a.body)
	}
}

func TestAConnectionMayCloseWithoutAByte(t *testing.T) {
	l := open(t, "bibs.list: close")
	fresh := http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // on a used connection net/http asks again
	if _, err := fresh.Do(l.request("GET", "/bibs", "")); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestAPageHasFiftyUnlessItIsTold(t *testing.T) {
	l := open(t, "")
	first, rest := read[list](l.send("GET", "/bibs", "")), read[list](l.send("GET", "/bibs?offset=50", ""))
	if len(first.Entries) != 50 || first.Total != 50 || len(rest.Entries) != 10 || rest.Total != 10 || rest.Start != 50 {
		t.Errorf("got %d of %d, then %d of %d from %d", len(first.Entries), first.Total, len(rest.Entries), rest.Total, rest.Start)
	}
}

func TestALimitAboveTheMaximumIsRefused(t *testing.T) {
	if a := open(t, "").send("GET", "/bibs?limit=2001", ""); a.status != 400 {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestAListOfIDsLongerThanThePageIsCutWithoutAWord(t *testing.T) {
	l := open(t, "")
	var asked []string
	for n := 1; n <= 60; n++ {
		asked = append(asked, strconv.Itoa(1000000+n))
	}
	if got := ids(l.send("GET", "/bibs?id="+strings.Join(asked, ","), "")); len(got) != 50 {
		t.Errorf("got %d", len(got))
	}
}

func TestItemsAreFoundByTheirBib(t *testing.T) {
	got := ids(open(t, "").send("GET", "/items?bibIds=1000003", ""))
	if diff := cmp.Diff(got, []string{"2000005", "2000006"}); diff != "" {
		t.Error(diff)
	}
}

func TestAWalkByIDGoesOnAfterTheLast(t *testing.T) {
	got := ids(open(t, "").send("GET", "/bibs?id=[1000058,]&limit=2", ""))
	if diff := cmp.Diff(got, []string{"1000058", "1000059"}); diff != "" {
		t.Error(diff)
	}
}

func TestAWindowWithoutChangesIsNotFound(t *testing.T) {
	l := open(t, "")
	const window = "/bibs?updatedDate=[2026-11-30T00:00:00Z,]"
	if got := fault(l.send("GET", window, "")); got != "404 107 0 Record not found" {
		t.Errorf("got %s", got)
	}
	if a := l.send("PUT", "/bibs/1000004", `{"title":"Tides"}`); a.status != 204 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	if diff := cmp.Diff(ids(l.send("GET", window, "")), []string{"1000004"}); diff != "" {
		t.Error(diff)
	}
}

func TestDeletedRecordsKeepTheirIDAndADay(t *testing.T) {
	l := open(t, "")
	const gone = "/bibs?deleted=true&deletedDate=2026-11-30"
	if a := l.send("GET", gone, ""); a.status != 200 || a.body != `{"start":0,"entries":[]}` {
		t.Errorf("got %d %s", a.status, a.body)
	}
	l.send("DELETE", "/bibs/1000004", "")
	want := list{Total: 1, Entries: []map[string]any{{"id": "1000004", "deletedDate": "2026-11-30", "deleted": true}}}
	if diff := cmp.Diff(read[list](l.send("GET", gone, "")), want); diff != "" {
		t.Error(diff)
	}
	if a := l.send("GET", "/bibs?deleted=false&id=1000004", ""); a.status != 404 {
		t.Errorf("deleted=false: got %d %s", a.status, a.body)
	}
}

func TestFieldsOfDeletedRecordsFail(t *testing.T) {
	if got := fault(open(t, "").send("GET", "/bibs?deleted=true&fields=id", "")); got != "500 111 0 Data service" {
		t.Errorf("got %s", got)
	}
}

func TestFieldsLeaveTheOthersOut(t *testing.T) {
	got := read[map[string]any](open(t, "").send("GET", "/bibs/1000001?fields=publishYear", ""))
	if diff := cmp.Diff(got, map[string]any{"id": "1000001", "publishYear": 1951.0}); diff != "" {
		t.Error(diff)
	}
}

func TestTheEleventhExportIsRefusedForAQuarterOfAnHour(t *testing.T) {
	l := open(t, "")
	for range 10 {
		if a := l.send("GET", "/bibs/marc?limit=1", ""); a.status != 200 {
			t.Fatalf("got %d %s", a.status, a.body)
		}
	}
	refused := l.send("GET", "/bibs/marc?limit=1", "")
	if got := fault(refused); got != "500 109 0 Rate exceeded for endpoint" || refused.header.Get("Retry-After") != "" {
		t.Errorf("got %s, %v", got, refused.header)
	}
	if a := l.send("GET", "/bibs", ""); a.status != 200 {
		t.Errorf("another endpoint: got %d", a.status)
	}
	l.api.Case("").Advance(15 * time.Minute)
	if a := l.send("GET", "/bibs/marc?limit=1", ""); a.status != 200 {
		t.Errorf("afterwards: got %d", a.status)
	}
}

type summary struct {
	File                                string
	InputRecords, OutputRecords, Errors int
}

func TestAnExportIsAFileOfRecords(t *testing.T) {
	l := open(t, "")
	s := read[summary](l.send("GET", "/bibs/marc?id=[1000001,1000002]", ""))
	a := l.send("GET", strings.TrimPrefix(s.File, l.url), "")
	records := strings.SplitAfter(a.body, "\x1d")
	if s.OutputRecords != 2 || len(records) != 3 || a.header.Get("Content-Type") != "application/marc" {
		t.Fatalf("got %+v, %d %q", s, a.status, a.body)
	}
	for _, r := range records[:2] {
		if n, _ := strconv.Atoi(r[:5]); n != len(r) {
			t.Errorf("the leader says %d of %d bytes", n, len(r))
		}
	}
}

func TestARecordTooLargeForMARCIsCutWith200(t *testing.T) {
	a := open(t, "").send("GET", "/bibs/marc?id=1000007", "")
	if got := read[summary](a); a.status != 200 || got.OutputRecords != 1 || got.Errors != 1 {
		t.Errorf("got %d %+v", a.status, got)
	}
}

func TestAnExportOfDeletedRecordsPutsOutNothing(t *testing.T) {
	l := open(t, "")
	l.send("DELETE", "/bibs/1000004", "")
	if got := read[summary](l.send("GET", "/bibs/marc?id=1000004", "")); got.InputRecords != 1 || got.OutputRecords != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAnExportOfNothingFails(t *testing.T) {
	a := open(t, "").send("GET", "/bibs/marc?id=1999999", "")
	if got := fault(a); got != "500 135 0 External process failed" || !strings.Contains(a.body, "No records exported") {
		t.Errorf("got %s: %s", got, a.body)
	}
}

func TestSomeServicesAreOffForEver(t *testing.T) {
	l := open(t, "")
	for range 2 {
		if got := fault(l.send("GET", "/orders", "")); got != "503 117 0 API disabled" {
			t.Errorf("got %s", got)
		}
		if got := fault(l.send("GET", "/invoices", "")); got != "503 118 0 Service not in access tier" {
			t.Errorf("got %s", got)
		}
		l.api.Case("").Advance(24 * time.Hour)
		l.token = read[struct {
			Token string `json:"access_token"`
		}](l.login("key", "secret")).Token
	}
}

const wish = `{"recordType":"i","recordNumber":2000005,"pickupLocation":"main"}`

func TestAHoldWhoseAnswerWasLostWasPlacedOnce(t *testing.T) {
	l := open(t, "holds.place: commit-then-504")
	const path = "/patrons/3000001/holds/requests"
	if a := l.send("POST", path, wish); a.status != 504 {
		t.Fatalf("got %d", a.status)
	}
	if got := fault(l.send("POST", path, wish)); got != "500 132 929 XCirc error" {
		t.Errorf("got %s", got)
	}
	entries := read[list](l.send("GET", "/patrons/3000001/holds", "")).Entries
	if len(entries) != 1 || l.api.Effects().Kinds["hold"].Count != 1 || !strings.HasSuffix(entries[0]["record"].(string), "/items/2000005") {
		t.Errorf("got %v, %+v", entries, l.api.Effects())
	}
}

func TestAHoldIsPendingAndThenReady(t *testing.T) {
	l := open(t, "")
	status := func() any {
		return read[list](l.send("GET", "/patrons/3000001/holds", "")).Entries[0]["status"].(map[string]any)["code"]
	}
	l.send("POST", "/patrons/3000001/holds/requests", wish)
	before := status()
	l.api.Case("").Advance(2 * time.Second)
	if after := status(); before != "0" || after != "i" {
		t.Errorf("got %v, then %v", before, after)
	}
}

func TestTheNextInTheQueueMovesUpWhenAHoldIsCancelled(t *testing.T) {
	l := open(t, "")
	l.send("POST", "/patrons/3000001/holds/requests", wish)
	l.send("POST", "/patrons/3000002/holds/requests", wish)
	second := func() map[string]any { return read[map[string]any](l.send("GET", "/patrons/holds/2", "")) }
	if got := second()["priority"]; got != 1.0 {
		t.Errorf("got priority %v, want 1", got)
	}
	if a := l.send("DELETE", "/patrons/holds/1", ""); a.status != 204 {
		t.Fatalf("got %d %s", a.status, a.body)
	}
	l.api.Case("").Advance(2 * time.Second)
	if got := second(); got["priority"] != 0.0 || got["status"].(map[string]any)["code"] != "i" {
		t.Errorf("got %v", got)
	}
}

func TestHoldsAreRefusedWithTheStatusOfAFailure(t *testing.T) {
	for _, tt := range []struct{ name, patron, body, want string }{
		{"of nothing", "3000001", `{"recordType":"i","recordNumber":2999999,"pickupLocation":"main"}`, "500 132 433 XCirc error"},
		{"by a blocked patron", "3000009", wish, "500 132 2 XCirc error"},
		{"by nobody", "3999999", wish, "404 107 0 Record not found"},
		{"without a place", "3000001", `{"recordType":"i","recordNumber":2000005}`, "400 108 0 Invalid parameter"},
	} {
		if got := fault(open(t, "").send("POST", "/patrons/"+tt.patron+"/holds/requests", tt.body)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestASecondHoldLaterIsAnotherError(t *testing.T) {
	l := open(t, "")
	l.send("POST", "/patrons/3000001/holds/requests", wish)
	l.api.Case("").Advance(5 * time.Minute)
	if got := fault(l.send("POST", "/patrons/3000001/holds/requests", wish)); got != "500 132 2 XCirc error" {
		t.Errorf("got %s", got)
	}
}

func TestPhonesAddUp(t *testing.T) {
	l := open(t, "")
	for range 2 {
		l.send("PUT", "/patrons/3000001", `{"phones":[{"number":"1","type":"t"}]}`)
	}
	got := read[struct{ Phones []any }](l.send("GET", "/patrons/3000001", ""))
	if len(got.Phones) != 2 || l.api.Effects().Kinds["patron update"].Repeated != 1 {
		t.Errorf("got %v, %+v", got, l.api.Effects())
	}
}

func TestAPatronMayBeReadAndNotWritten(t *testing.T) {
	l := open(t, "")
	if read, write := l.send("GET", "/patrons/3000007", "").status, l.send("PUT", "/patrons/3000007", `{}`).status; read != 200 || write != 404 {
		t.Errorf("got %d, then %d", read, write)
	}
}

func TestAWeakPINIsRefusedWithItsReason(t *testing.T) {
	l := open(t, "")
	for pin, want := range map[string]string{"1234": "400 136 6 PIN is not valid", strings.Repeat("17", 20): "400 136 3 PIN is not valid"} {
		if got := fault(l.send("PUT", "/patrons/3000001", `{"pin":"`+pin+`"}`)); got != want {
			t.Errorf("%s: got %s, want %s", pin, got, want)
		}
	}
}

func TestAPINIsValidOrNot(t *testing.T) {
	l := open(t, "")
	good := l.send("POST", "/patrons/validate", `{"barcode":"22003000001","pin":"4711"}`)
	bad := l.send("POST", "/patrons/validate", `{"barcode":"22003000001","pin":"4712"}`)
	if good.status != 204 || bad.status != 400 {
		t.Errorf("got %d, then %d", good.status, bad.status)
	}
}

func TestAPatronIsFoundByBarcode(t *testing.T) {
	got := read[map[string]any](open(t, "").send("GET", "/patrons/find?varFieldTag=b&varFieldContent=22003000002", ""))
	if got["id"] != "3000002" {
		t.Errorf("got %v", got)
	}
}

func TestABibThatIsMadeIsFound(t *testing.T) {
	l := open(t, "")
	made := read[struct{ Link string }](l.send("POST", "/bibs", `{"title":"Salt"}`))
	if got := read[map[string]any](l.send("GET", strings.TrimPrefix(made.Link, l.url), "")); got["title"] != "Salt" {
		t.Errorf("got %v", got)
	}
}

func TestErrorsAreXMLForWhoWantsXML(t *testing.T) {
	l := open(t, "")
	r := l.request("GET", "/bibs/1", "")
	r.Header.Set("Accept", "application/xml")
	a := l.do(r)
	if a.status != 404 || !strings.Contains(a.body, "<error><code>107</code>") || !strings.HasPrefix(a.header.Get("Content-Type"), "application/xml") {
		t.Errorf("got %d %v %s", a.status, a.header, a.body)
	}
}

func TestATooManyRequestsComesFromAProxyInFront(t *testing.T) {
	a := open(t, "bibs.list: 429(after=5s)").send("GET", "/bibs", "")
	if a.status != 429 || a.header.Get("Retry-After") != "5" || a.header.Get("Content-Type") != "text/html" {
		t.Errorf("got %d %v", a.status, a.header)
	}
}

func TestAThrottleIsSierrasOwn(t *testing.T) {
	if got := fault(open(t, "bibs.list: throttle").send("GET", "/bibs", "")); got != "500 109 0 Rate exceeded for endpoint" {
		t.Errorf("got %s", got)
	}
}

func TestAClientIsTheSameOneWithAnotherToken(t *testing.T) {
	l := open(t, "bibs.list: 503 x2")
	var got []int
	for range 3 {
		got = append(got, l.send("GET", "/bibs", "").status)
		l.token = read[struct {
			Token string `json:"access_token"`
		}](l.login("key", "secret")).Token
	}
	if diff := cmp.Diff(got, []int{503, 503, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	a := open(t, "").send("POST", "/bibs/query", "{}")
	if a.status != 404 && a.status != 405 || !strings.Contains(a.body, "GET /iii/sierra-api/v6/bibs") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}
