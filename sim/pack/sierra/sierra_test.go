package sierra_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/pack/sierra"
)

// library is a Sierra, and a client of it that has logged in.
type library struct{ *packtest.Client }

func open(t *testing.T, steps string) library {
	t.Helper()
	l := library{packtest.Serve(t, sierra.Pack(), sim.World{Steps: steps, Records: 60})}
	l.URL += "/iii/sierra-api/v6"
	l.renew()
	return l
}

func (l library) login(key, secret string) packtest.Answer {
	l.T.Helper()
	basic := base64.StdEncoding.EncodeToString([]byte(key + ":" + secret))
	return l.Send("POST", "/token", "grant_type=client_credentials", "Authorization: Basic "+basic)
}

// renew takes another token.
func (l library) renew() {
	l.T.Helper()
	t := packtest.Read[struct {
		Token string `json:"access_token"`
	}](l.login("key", "secret"))
	l.Header.Set("Authorization", "Bearer "+t.Token)
}

// fault is an error as three numbers and a name.
func fault(t *testing.T, a packtest.Answer) string {
	t.Helper()
	f := packtest.Read[struct {
		Code         int
		SpecificCode int
		HTTPStatus   int
		Name         string
	}](a)
	if f.HTTPStatus != a.Status {
		t.Errorf("the body says %d, the status %d", f.HTTPStatus, a.Status)
	}
	return strings.Join([]string{strconv.Itoa(a.Status), strconv.Itoa(f.Code), strconv.Itoa(f.SpecificCode), f.Name}, " ")
}

type list struct {
	Total, Start int
	Entries      []map[string]any
}

func ids(a packtest.Answer) (got []string) {
	for _, e := range packtest.Read[list](a).Entries {
		got = append(got, e["id"].(string))
	}
	return got
}

func TestATokenLastsAnHour(t *testing.T) {
	l := open(t, "")
	l.Advance(time.Hour - 1)
	if a := l.Get("/bibs"); a.Status != 200 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	l.Advance(1)
	if got := fault(t, l.Get("/bibs")); got != "401 123 0 Unauthorized" {
		t.Errorf("got %s", got)
	}
}

func TestATokenThatIsRevokedEarlyIsReplacedByAnother(t *testing.T) {
	l := open(t, "bibs.list: ok, expire")
	var got []int
	for range 3 {
		got = append(got, l.Get("/bibs").Status)
	}
	l.renew()
	got = append(got, l.Get("/bibs").Status)
	if diff := cmp.Diff(got, []int{200, 401, 401, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutASecretThereIsNoToken(t *testing.T) {
	if got := fault(t, open(t, "").login("key", "")); got != "401 113 0 Unauthorized" {
		t.Errorf("got %s", got)
	}
}

func TestATokenMayComeEmpty(t *testing.T) {
	l := open(t, "tokens.create: ok, empty")
	if a := l.login("key", "secret"); a.Status != 200 || a.Body != "" {
		t.Errorf("got %d %q", a.Status, a.Body)
	}
}

func TestAConnectionMayCloseWithoutAByte(t *testing.T) {
	l := open(t, "bibs.list: close")
	if _, err := l.Try("GET", "/bibs", ""); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestAPageHasFiftyUnlessItIsTold(t *testing.T) {
	l := open(t, "")
	first, rest := packtest.Read[list](l.Get("/bibs")), packtest.Read[list](l.Get("/bibs?offset=50"))
	if len(first.Entries) != 50 || first.Total != 50 || len(rest.Entries) != 10 || rest.Total != 10 || rest.Start != 50 {
		t.Errorf("got %d of %d, then %d of %d from %d", len(first.Entries), first.Total, len(rest.Entries), rest.Total, rest.Start)
	}
}

func TestALimitAboveTheMaximumIsRefused(t *testing.T) {
	if a := open(t, "").Get("/bibs?limit=2001"); a.Status != 400 {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAListOfIDsLongerThanThePageIsCutWithoutAWord(t *testing.T) {
	l := open(t, "")
	var asked []string
	for n := 1; n <= 60; n++ {
		asked = append(asked, strconv.Itoa(1000000+n))
	}
	if got := ids(l.Get("/bibs?id=" + strings.Join(asked, ","))); len(got) != 50 {
		t.Errorf("got %d", len(got))
	}
}

func TestItemsAreFoundByTheirBib(t *testing.T) {
	got := ids(open(t, "").Get("/items?bibIds=1000003"))
	if diff := cmp.Diff(got, []string{"2000005", "2000006"}); diff != "" {
		t.Error(diff)
	}
}

func TestAWalkByIDGoesOnAfterTheLast(t *testing.T) {
	got := ids(open(t, "").Get("/bibs?id=[1000058,]&limit=2"))
	if diff := cmp.Diff(got, []string{"1000058", "1000059"}); diff != "" {
		t.Error(diff)
	}
}

func TestAWindowWithoutChangesIsNotFound(t *testing.T) {
	l := open(t, "")
	const window = "/bibs?updatedDate=[2026-11-30T00:00:00Z,]"
	if got := fault(t, l.Get(window)); got != "404 107 0 Record not found" {
		t.Errorf("got %s", got)
	}
	if a := l.Send("PUT", "/bibs/1000004", `{"title":"Tides"}`); a.Status != 204 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	if diff := cmp.Diff(ids(l.Get(window)), []string{"1000004"}); diff != "" {
		t.Error(diff)
	}
}

func TestDeletedRecordsKeepTheirIDAndADay(t *testing.T) {
	l := open(t, "")
	const gone = "/bibs?deleted=true&deletedDate=2026-11-30"
	if a := l.Get(gone); a.Status != 200 || a.Body != `{"start":0,"entries":[]}` {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	l.Send("DELETE", "/bibs/1000004", "")
	want := list{Total: 1, Entries: []map[string]any{{"id": "1000004", "deletedDate": "2026-11-30", "deleted": true}}}
	if diff := cmp.Diff(packtest.Read[list](l.Get(gone)), want); diff != "" {
		t.Error(diff)
	}
	if a := l.Get("/bibs?deleted=false&id=1000004"); a.Status != 404 {
		t.Errorf("deleted=false: got %d %s", a.Status, a.Body)
	}
}

func TestADeletedItemIsALeftoverAndCannotBeChanged(t *testing.T) {
	l := open(t, "")
	l.Send("DELETE", "/items/2000003", "")
	got := packtest.Read[map[string]any](l.Get("/items/2000003"))
	if diff := cmp.Diff(got, map[string]any{"id": "2000003", "deletedDate": "2026-11-30", "deleted": true}); diff != "" {
		t.Error(diff)
	}
	for _, method := range []string{"PUT", "DELETE"} {
		if a := l.Send(method, "/items/2000003", "{}"); a.Status != 404 {
			t.Errorf("%s: got %d %s", method, a.Status, a.Body)
		}
	}
}

func TestAnItemIsChanged(t *testing.T) {
	l := open(t, "")
	a := l.Send("PUT", "/items/2000003", `{"status":"m"}`)
	got := packtest.Read[struct {
		Status  struct{ Code string }
		Updated time.Time `json:"updatedDate"`
	}](l.Get("/items/2000003"))
	if a.Status != 204 || got.Status.Code != "m" || !got.Updated.Equal(packtest.Noon) {
		t.Errorf("got %d, then %+v", a.Status, got)
	}
}

func TestFieldsOfDeletedRecordsFail(t *testing.T) {
	if got := fault(t, open(t, "").Get("/bibs?deleted=true&fields=id")); got != "500 111 0 Data service" {
		t.Errorf("got %s", got)
	}
}

func TestFieldsLeaveTheOthersOut(t *testing.T) {
	got := packtest.Read[map[string]any](open(t, "").Get("/bibs/1000001?fields=publishYear"))
	if diff := cmp.Diff(got, map[string]any{"id": "1000001", "publishYear": 1951.0}); diff != "" {
		t.Error(diff)
	}
}

func TestTheEleventhExportIsRefusedForAQuarterOfAnHour(t *testing.T) {
	l := open(t, "")
	for range 10 {
		if a := l.Get("/bibs/marc?limit=1"); a.Status != 200 {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
	}
	refused := l.Get("/bibs/marc?limit=1")
	if got := fault(t, refused); got != "500 109 0 Rate exceeded for endpoint" || refused.Header.Get("Retry-After") != "" {
		t.Errorf("got %s, %v", got, refused.Header)
	}
	if a := l.Get("/bibs"); a.Status != 200 {
		t.Errorf("another endpoint: got %d", a.Status)
	}
	l.Advance(15 * time.Minute)
	if a := l.Get("/bibs/marc?limit=1"); a.Status != 200 {
		t.Errorf("afterwards: got %d", a.Status)
	}
}

type summary struct {
	File                                string
	InputRecords, OutputRecords, Errors int
}

func TestAnExportIsAFileOfRecords(t *testing.T) {
	l := open(t, "")
	s := packtest.Read[summary](l.Get("/bibs/marc?id=[1000001,1000002]"))
	a := l.Get(strings.TrimPrefix(s.File, l.URL))
	records := strings.SplitAfter(a.Body, "\x1d")
	if s.OutputRecords != 2 || len(records) != 3 || a.Header.Get("Content-Type") != "application/marc" {
		t.Fatalf("got %+v, %d %q", s, a.Status, a.Body)
	}
	for _, r := range records[:2] {
		if n, _ := strconv.Atoi(r[:5]); n != len(r) {
			t.Errorf("the leader says %d of %d bytes", n, len(r))
		}
	}
}

func TestARecordTooLargeForMARCIsCutWith200(t *testing.T) {
	a := open(t, "").Get("/bibs/marc?id=1000007")
	if got := packtest.Read[summary](a); a.Status != 200 || got.OutputRecords != 1 || got.Errors != 1 {
		t.Errorf("got %d %+v", a.Status, got)
	}
}

func TestAnExportOfDeletedRecordsPutsOutNothing(t *testing.T) {
	l := open(t, "")
	l.Send("DELETE", "/bibs/1000004", "")
	if got := packtest.Read[summary](l.Get("/bibs/marc?id=1000004")); got.InputRecords != 1 || got.OutputRecords != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAnExportOfNothingFails(t *testing.T) {
	a := open(t, "").Get("/bibs/marc?id=1999999")
	if got := fault(t, a); got != "500 135 0 External process failed" || !strings.Contains(a.Body, "No records exported") {
		t.Errorf("got %s: %s", got, a.Body)
	}
}

func TestSomeServicesAreOffForEver(t *testing.T) {
	l := open(t, "")
	for range 2 {
		if got := fault(t, l.Get("/orders")); got != "503 117 0 API disabled" {
			t.Errorf("got %s", got)
		}
		if got := fault(t, l.Get("/invoices")); got != "503 118 0 Service not in access tier" {
			t.Errorf("got %s", got)
		}
		l.Advance(24 * time.Hour)
		l.renew()
	}
}

const wish = `{"recordType":"i","recordNumber":2000005,"pickupLocation":"main"}`

func TestAHoldWhoseAnswerWasLostWasPlacedOnce(t *testing.T) {
	l := open(t, "holds.place: commit-then-504")
	const path = "/patrons/3000001/holds/requests"
	if a := l.Send("POST", path, wish); a.Status != 504 {
		t.Fatalf("got %d", a.Status)
	}
	if got := fault(t, l.Send("POST", path, wish)); got != "500 132 929 XCirc error" {
		t.Errorf("got %s", got)
	}
	entries := packtest.Read[list](l.Get("/patrons/3000001/holds")).Entries
	if len(entries) != 1 || l.Case.Effects().Kinds["hold"].Count != 1 || !strings.HasSuffix(entries[0]["record"].(string), "/items/2000005") {
		t.Errorf("got %v, %+v", entries, l.Case.Effects())
	}
}

func TestAHoldIsPendingAndThenReady(t *testing.T) {
	l := open(t, "")
	status := func() any {
		return packtest.Read[list](l.Get("/patrons/3000001/holds")).Entries[0]["status"].(map[string]any)["code"]
	}
	l.Send("POST", "/patrons/3000001/holds/requests", wish)
	before := status()
	l.Advance(2 * time.Second)
	if after := status(); before != "0" || after != "i" {
		t.Errorf("got %v, then %v", before, after)
	}
}

func TestTheNextInTheQueueMovesUpWhenAHoldIsCancelled(t *testing.T) {
	l := open(t, "")
	l.Send("POST", "/patrons/3000001/holds/requests", wish)
	l.Send("POST", "/patrons/3000002/holds/requests", wish)
	second := func() map[string]any { return packtest.Read[map[string]any](l.Get("/patrons/holds/2")) }
	if got := second()["priority"]; got != 1.0 {
		t.Errorf("got priority %v, want 1", got)
	}
	if a := l.Send("DELETE", "/patrons/holds/1", ""); a.Status != 204 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	l.Advance(2 * time.Second)
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
		if got := fault(t, open(t, "").Send("POST", "/patrons/"+tt.patron+"/holds/requests", tt.body)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestASecondHoldLaterIsAnotherError(t *testing.T) {
	l := open(t, "")
	l.Send("POST", "/patrons/3000001/holds/requests", wish)
	l.Advance(5 * time.Minute)
	if got := fault(t, l.Send("POST", "/patrons/3000001/holds/requests", wish)); got != "500 132 2 XCirc error" {
		t.Errorf("got %s", got)
	}
}

func TestPhonesAddUp(t *testing.T) {
	l := open(t, "")
	for range 2 {
		l.Send("PUT", "/patrons/3000001", `{"phones":[{"number":"1","type":"t"}]}`)
	}
	got := packtest.Read[struct{ Phones []any }](l.Get("/patrons/3000001"))
	if len(got.Phones) != 2 || l.Case.Effects().Kinds["patron update"].Repeated != 1 {
		t.Errorf("got %v, %+v", got, l.Case.Effects())
	}
}

func TestAPatronMayBeReadAndNotWritten(t *testing.T) {
	l := open(t, "")
	if read, write := l.Get("/patrons/3000007").Status, l.Send("PUT", "/patrons/3000007", `{}`).Status; read != 200 || write != 404 {
		t.Errorf("got %d, then %d", read, write)
	}
}

func TestAWeakPINIsRefusedWithItsReason(t *testing.T) {
	l := open(t, "")
	for pin, want := range map[string]string{"1234": "400 136 6 PIN is not valid", strings.Repeat("17", 20): "400 136 3 PIN is not valid"} {
		if got := fault(t, l.Send("PUT", "/patrons/3000001", `{"pin":"`+pin+`"}`)); got != want {
			t.Errorf("%s: got %s, want %s", pin, got, want)
		}
	}
}

func TestAPINIsValidOrNot(t *testing.T) {
	l := open(t, "")
	good := l.Send("POST", "/patrons/validate", `{"barcode":"22003000001","pin":"4711"}`)
	bad := l.Send("POST", "/patrons/validate", `{"barcode":"22003000001","pin":"4712"}`)
	if good.Status != 204 || bad.Status != 400 {
		t.Errorf("got %d, then %d", good.Status, bad.Status)
	}
}

func TestAPatronIsFoundByBarcode(t *testing.T) {
	got := packtest.Read[map[string]any](open(t, "").Get("/patrons/find?varFieldTag=b&varFieldContent=22003000002"))
	if got["id"] != "3000002" {
		t.Errorf("got %v", got)
	}
}

func TestANameOfSeveralPatronsIsAConflict(t *testing.T) {
	l := open(t, "")
	seen := map[string]bool{}
	for _, e := range packtest.Read[list](l.Get("/patrons?limit=60")).Entries {
		name := e["names"].([]any)[0].(string)
		if !seen[name] {
			seen[name] = true
			continue
		}
		if got := fault(t, l.Get("/patrons/find?varFieldTag=n&varFieldContent="+url.QueryEscape(name))); got != "409 133 0 Several records match" {
			t.Errorf("got %s", got)
		}
		return
	}
	t.Fatal("no two of sixty patrons share a name")
}

func TestATokenTellsOfItselfAndNotOfItsKey(t *testing.T) {
	l := open(t, "")
	l.Advance(time.Minute)
	a := l.Get("/info/token")
	if got := packtest.Read[struct{ ExpiresIn int }](a); got.ExpiresIn != 3540 || strings.Contains(a.Body, `"key"`) {
		t.Errorf("got %s", a.Body)
	}
}

func TestAnEnvelopeIsWhatALayerInBetweenMakes(t *testing.T) {
	a := open(t, "bibs.list: envelope").Get("/bibs")
	if a.Status != 200 || a.Body != `{"code":"-1"}` {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestABibThatIsMadeIsFound(t *testing.T) {
	l := open(t, "")
	made := packtest.Read[struct{ Link string }](l.Send("POST", "/bibs", `{"title":"Salt"}`))
	if got := packtest.Read[map[string]any](l.Get(strings.TrimPrefix(made.Link, l.URL))); got["title"] != "Salt" {
		t.Errorf("got %v", got)
	}
}

func TestErrorsAreXMLForWhoWantsXML(t *testing.T) {
	l := open(t, "")
	a := l.Get("/bibs/1", "Accept: application/xml")
	if a.Status != 404 || !strings.Contains(a.Body, "<error><code>107</code>") || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/xml") {
		t.Errorf("got %d %v %s", a.Status, a.Header, a.Body)
	}
}

func TestATooManyRequestsComesFromAProxyInFront(t *testing.T) {
	a := open(t, "bibs.list: 429(after=5s)").Get("/bibs")
	if a.Status != 429 || a.Header.Get("Retry-After") != "5" || a.Header.Get("Content-Type") != "text/html" {
		t.Errorf("got %d %v", a.Status, a.Header)
	}
}

func TestAThrottleIsSierrasOwn(t *testing.T) {
	if got := fault(t, open(t, "bibs.list: throttle").Get("/bibs")); got != "500 109 0 Rate exceeded for endpoint" {
		t.Errorf("got %s", got)
	}
}

func TestAClientIsTheSameOneWithAnotherToken(t *testing.T) {
	l := open(t, "bibs.list: 503 x2")
	var got []int
	for range 3 {
		got = append(got, l.Get("/bibs").Status)
		l.renew()
	}
	if diff := cmp.Diff(got, []int{503, 503, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	a := open(t, "").Send("POST", "/bibs/query", "{}")
	if a.Status != 404 && a.Status != 405 || !strings.Contains(a.Body, "GET /iii/sierra-api/v6/bibs") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}
