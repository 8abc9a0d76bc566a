package alma_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/alma"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/rate"
)

// open is an institution whose clients ask for JSON.
func open(t *testing.T, w sim.World) *packtest.Client {
	t.Helper()
	if w.Records == 0 {
		w.Records = 120
	}
	c := packtest.Serve(t, alma.Pack(), w)
	c.URL += "/almaws/v1"
	c.Header.Set("Authorization", "apikey l8xx1")
	c.Header.Set("Accept", "application/json")
	return c
}

type fault struct {
	ErrorsExist bool
	ErrorList   struct {
		Error []struct{ ErrorCode, ErrorMessage string }
	}
}

// code is the status and the first error's code.
func code(a packtest.Answer) string {
	f := packtest.Read[fault](a)
	if !f.ErrorsExist || len(f.ErrorList.Error) == 0 {
		return "no error: " + a.Body
	}
	return strconv.Itoa(a.Status) + " " + f.ErrorList.Error[0].ErrorCode
}

func TestAKeyComesInTheHeaderOrTheQuery(t *testing.T) {
	c := open(t, sim.World{})
	c.Header.Del("Authorization")
	none, query := c.Get("/users/u1"), c.Get("/users/u1?apikey=l8xx1")
	header := c.Get("/users/u1", "Authorization: apikey l8xx1")
	if got := code(none); got != "401 UNAUTHORIZED" || query.Status != 200 || header.Status != 200 {
		t.Errorf("got %s, %d, %d", got, query.Status, header.Status)
	}
}

func TestTheTwentySixthRequestInASecondIsRefusedForTheWholeInstitution(t *testing.T) {
	c := open(t, sim.World{})
	for range 25 {
		if a := c.Get("/users/u1"); a.Status != 200 {
			t.Fatalf("got %d %s", a.Status, a.Body)
		}
	}
	other := c.Get("/users/u1", "Authorization: apikey l8xx2")
	if got := code(other); got != "429 PER_SECOND_THRESHOLD" || other.Header.Get("Retry-After") != "" {
		t.Errorf("got %s %v", got, other.Header)
	}
	c.Advance(2 * time.Second)
	if a := c.Get("/users/u1"); a.Status != 200 {
		t.Errorf("two seconds later: got %d", a.Status)
	}
}

func TestTheDayEndsAtMidnightAndIsToldUntilThen(t *testing.T) {
	c := open(t, sim.World{Limits: []rate.Limit{{Name: "DAILY_THRESHOLD", Kind: rate.Daily, Capacity: 3, Scope: rate.Everyone}}})
	var got []string
	for range 4 {
		a := c.Get("/users/nobody")
		got = append(got, code(a)+", "+a.Header.Get("X-Exl-Api-Remaining")+" left")
	}
	want := []string{"400 401861, 2 left", "400 401861, 1 left", "400 401861, 0 left", "429 DAILY_THRESHOLD, 0 left"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	c.Advance(12*time.Hour - 1)
	if before := code(c.Get("/users/nobody")); before != "429 DAILY_THRESHOLD" {
		t.Errorf("before midnight: got %s", before)
	}
	c.Advance(1)
	if a := c.Get("/users/u1"); a.Status != 200 {
		t.Errorf("at midnight: got %d", a.Status)
	}
}

func TestEverybodyIsAnsweredInXMLUnlessJSONIsAskedFor(t *testing.T) {
	c := open(t, sim.World{})
	c.Header.Del("Accept")
	a := c.Get("/users/u1")
	u := packtest.ReadXML[struct {
		ID     string `xml:"primary_id"`
		Status string `xml:"status"`
	}](a)
	if u.ID != "u1" || u.Status != "ACTIVE" || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/xml") {
		t.Errorf("got %+v %v", u, a.Header)
	}
	e := packtest.ReadXML[struct {
		XMLName struct{} `xml:"http://com/exlibris/urm/general/xmlbeans web_service_result"`
		Code    string   `xml:"errorList>error>errorCode"`
	}](c.Get("/users/nobody"))
	if e.Code != "401861" {
		t.Errorf("got %+v", e)
	}
	if got := packtest.Read[map[string]any](c.Get("/users/u1?format=json")); got["primary_id"] != "u1" {
		t.Errorf("format=json: got %v", got)
	}
}

func TestXMLMayComeWhereJSONWasAskedFor(t *testing.T) {
	c := open(t, sim.World{Steps: "users.get: golden(the same as XML, where JSON was asked for)"})
	a := c.Get("/users/u1")
	if a.Status != 429 || !strings.Contains(a.Body, "<errorCode>PER_SECOND_THRESHOLD</errorCode>") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAUserIsMadeReadReplacedAndDeleted(t *testing.T) {
	c := open(t, sim.World{})
	steps := []packtest.Answer{
		c.Send("POST", "/users", `{"primary_id":"ada","last_name":"L","first_name":"Ada"}`),
		c.Send("PUT", "/users/ada", `{"last_name":"K"}`),
		c.Get("/users/ada"),
		c.Send("DELETE", "/users/ada", ""),
	}
	var got []int
	for _, a := range steps {
		got = append(got, a.Status)
	}
	if diff := cmp.Diff(got, []int{200, 200, 200, 204}); diff != "" {
		t.Error(diff)
	}
	if u := packtest.Read[map[string]any](steps[2]); u["last_name"] != "K" || u["first_name"] != "" {
		t.Errorf("a PUT replaces all: got %v", u)
	}
	if got := code(c.Get("/users/ada")); got != "400 401861" {
		t.Errorf("afterwards: got %s", got)
	}
}

func TestAUserMayComeAsXML(t *testing.T) {
	c := open(t, sim.World{})
	c.Send("POST", "/users", `<user><primary_id>bo</primary_id><last_name>B</last_name></user>`, "Content-Type: application/xml")
	if got := packtest.Read[map[string]any](c.Get("/users/bo")); got["last_name"] != "B" {
		t.Errorf("got %v", got)
	}
}

func TestBusinessErrorsAre400WithANumber(t *testing.T) {
	const items = "/bibs/9900000010101/holdings/2200000010101/items"
	for _, tt := range []struct{ method, path, body, want string }{
		{"GET", "/users/nobody", "", "400 401861"},
		{"POST", "/users", `{"primary_id":"u1","last_name":"x"}`, "400 401851"},
		{"POST", "/users", `{"primary_id":"n"}`, "400 401664"},
		{"GET", "/items?item_barcode=none", "", "400 401689"},
		{"GET", "/bibs/991", "", "400 402203"},
		{"GET", items + "/1", "", "400 401683"},
		{"POST", "/users/u1/loans?item_barcode=none", "", "400 401689"},
		{"POST", "/users/u9/loans?item_barcode=A1", "", "400 401604"},
		{"POST", "/users/u1/requests?mms_id=9900000010101", `{}`, "400 401664"},
	} {
		if got := code(open(t, sim.World{}).Send(tt.method, tt.path, tt.body)); got != tt.want {
			t.Errorf("%s %s: got %s, want %s", tt.method, tt.path, got, tt.want)
		}
	}
}

func TestABatchHasErrorsAmongItsElements(t *testing.T) {
	a := open(t, sim.World{}).Get("/bibs?mms_id=9900000010101,992")
	got := packtest.Read[struct {
		Bib []struct {
			Mms  string `json:"mms_id"`
			List *struct {
				Error []struct{ ErrorCode string }
			} `json:"errorList"`
		}
		Total int `json:"total_record_count"`
	}](a)
	if a.Status != 200 || got.Total != 2 || got.Bib[0].List != nil || got.Bib[1].List == nil || got.Bib[1].List.Error[0].ErrorCode != "402203" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

type users struct {
	User  []map[string]any
	Total *int `json:"total_record_count"`
}

func TestAPageHasTenAndAtMostAHundred(t *testing.T) {
	c := open(t, sim.World{})
	usual, most := packtest.Read[users](c.Get("/users")), packtest.Read[users](c.Get("/users?limit=500"))
	if len(usual.User) != 10 || len(most.User) != 100 || *most.Total != 120 {
		t.Errorf("got %d, then %d of %d", len(usual.User), len(most.User), *most.Total)
	}
}

func TestBeyondTheEndTheTotalIsNull(t *testing.T) {
	a := open(t, sim.World{}).Get("/users?limit=100&offset=200")
	if got := packtest.Read[users](a); len(got.User) != 0 || got.Total != nil || !strings.Contains(a.Body, `"total_record_count":null`) {
		t.Errorf("got %s", a.Body)
	}
}

func TestABarcodeLeadsToItsItem(t *testing.T) {
	c := open(t, sim.World{})
	a := c.Get("/items?item_barcode=A4")
	to := a.Header.Get("Location")
	if a.Status != 302 || !strings.HasSuffix(to, "/bibs/9900000020101/holdings/2200000020101/items/2300000040101") {
		t.Fatalf("got %d %s", a.Status, to)
	}
	if got := c.Get(strings.TrimPrefix(to, c.URL)); got.Status != 200 || !strings.Contains(got.Body, `"barcode":"A4"`) {
		t.Errorf("got %d %s", got.Status, got.Body)
	}
}

func TestAnItemOnLoanIsNotLentAgainUntilItIsBack(t *testing.T) {
	c := open(t, sim.World{})
	lend := func() packtest.Answer { return c.Send("POST", "/users/u1/loans?item_barcode=A1", "{}") }
	first := lend()
	if got := code(lend()); first.Status != 200 || got != "400 401652" {
		t.Errorf("got %d, then %s", first.Status, got)
	}
	c.Send("POST", "/bibs/9900000010101/holdings/2200000010101/items/2300000010101?op=scan", "")
	if again := lend(); again.Status != 200 || c.Case.Effects().Kinds["loan"].Count != 2 {
		t.Errorf("got %d %s", again.Status, again.Body)
	}
}

func TestOfManyWhoBorrowAnItemAtOnceOneGetsIt(t *testing.T) {
	c := open(t, sim.World{Limits: []rate.Limit{}})
	statuses := make([]int, 64)
	errs := make([]error, len(statuses))
	var readers sync.WaitGroup
	for i := range statuses {
		readers.Go(func() {
			a, err := c.Try("POST", "/users/u"+strconv.Itoa(i+10)+"/loans?item_barcode=A1", "{}", "Authorization: apikey l8xx"+strconv.Itoa(i))
			statuses[i], errs[i] = a.Status, err
		})
	}
	readers.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for _, s := range statuses {
		counts[s]++
	}
	if diff := cmp.Diff(counts, map[int]int{200: 1, 400: 63}); diff != "" || c.Case.Effects().Kinds["loan"].Count != 1 {
		t.Errorf("%s%+v", diff, c.Case.Effects())
	}
}

func TestABibHasTwoItems(t *testing.T) {
	c := open(t, sim.World{})
	got := packtest.Read[struct {
		Item []struct {
			Data struct{ Barcode string } `json:"item_data"`
		}
		Total int `json:"total_record_count"`
	}](c.Get("/bibs/9900000020101/holdings/2200000020101/items"))
	if got.Total != 2 || len(got.Item) != 2 || got.Item[0].Data.Barcode != "A3" || got.Item[1].Data.Barcode != "A4" {
		t.Errorf("got %+v", got)
	}
	if got := code(c.Get("/bibs/9900000020101/holdings/2200000030101/items")); got != "400 402203" {
		t.Errorf("of another bib's holding: got %s", got)
	}
}

func TestALoanIsOfItsUserOnly(t *testing.T) {
	c := open(t, sim.World{})
	l := packtest.Read[struct {
		ID string `json:"loan_id"`
	}](c.Send("POST", "/users/u1/loans?item_barcode=A1", "{}"))
	if own := c.Get("/users/u1/loans/" + l.ID); own.Status != 200 {
		t.Errorf("got %d %s", own.Status, own.Body)
	}
	if got := code(c.Get("/users/u2/loans/" + l.ID)); got != "400 401822" {
		t.Errorf("got %s", got)
	}
}

func TestALoanWhoseAnswerWasLostIsInTheList(t *testing.T) {
	c := open(t, sim.World{Steps: "loans.create: commit-then-504"})
	if a := c.Send("POST", "/users/u1/loans?item_barcode=A1", "{}"); a.Status != 504 {
		t.Fatalf("got %d", a.Status)
	}
	got := packtest.Read[struct {
		Loans []struct {
			Barcode string `json:"item_barcode"`
		} `json:"item_loan"`
	}](c.Get("/users/u1/loans"))
	if len(got.Loans) != 1 || got.Loans[0].Barcode != "A1" || c.Case.Effects().Kinds["loan"].Count != 1 {
		t.Errorf("got %+v, %+v", got, c.Case.Effects())
	}
}

func TestAWarningPassesWithOverride(t *testing.T) {
	a := open(t, sim.World{}).Send("POST", "/users/u9/loans?item_barcode=A1&override=true", "{}")
	if a.Status != 200 {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestARenewalMovesTheDueDate(t *testing.T) {
	c := open(t, sim.World{})
	type loan struct {
		ID  string    `json:"loan_id"`
		Due time.Time `json:"due_date"`
	}
	l := packtest.Read[loan](c.Send("POST", "/users/u1/loans?item_barcode=A1", "{}"))
	c.Advance(24 * time.Hour)
	again := packtest.Read[loan](c.Send("POST", "/users/u1/loans/"+l.ID+"?op=renew", ""))
	if got := again.Due.Sub(l.Due); got != 24*time.Hour {
		t.Errorf("got %v later, want a day", got)
	}
}

type request struct {
	ID     string `json:"request_id"`
	Status string `json:"request_status"`
	Place  int    `json:"place_in_queue"`
}

const wish = `{"request_type":"HOLD","pickup_location_library":"MAIN"}`

func TestARequestGoesToTheShelfInTime(t *testing.T) {
	c := open(t, sim.World{})
	r := packtest.Read[request](c.Send("POST", "/users/u1/requests?mms_id=9900000010101", wish))
	got := []string{r.Status}
	for _, d := range []time.Duration{2 * time.Second, 8 * time.Second} {
		c.Advance(d)
		got = append(got, packtest.Read[request](c.Get("/users/u1/requests/"+r.ID)).Status)
	}
	if diff := cmp.Diff(got, []string{"NOT_STARTED", "IN_PROCESS", "ON_HOLD_SHELF"}); diff != "" {
		t.Error(diff)
	}
}

func TestTheNextRequestMovesUpWhenTheFirstIsCancelled(t *testing.T) {
	c := open(t, sim.World{})
	first := packtest.Read[request](c.Send("POST", "/users/u1/requests?mms_id=9900000010101", wish))
	second := packtest.Read[request](c.Send("POST", "/users/u2/requests?mms_id=9900000010101", wish))
	if second.Place != 2 {
		t.Errorf("got place %d, want 2", second.Place)
	}
	c.Send("DELETE", "/users/u1/requests/"+first.ID, "")
	c.Advance(2 * time.Second)
	if got := packtest.Read[request](c.Get("/users/u2/requests/" + second.ID)); got.Place != 1 || got.Status != "IN_PROCESS" {
		t.Errorf("got %+v", got)
	}
}

func TestARequestWhoseAnswerWasLostIsInTheList(t *testing.T) {
	c := open(t, sim.World{Steps: "requests.create: commit-then-504"})
	c.Send("POST", "/users/u1/requests?item_pid=2300000030101", wish)
	got := packtest.Read[struct {
		Requests []struct {
			MMS string `json:"mms_id"`
		} `json:"user_request"`
	}](c.Get("/users/u1/requests"))
	if len(got.Requests) != 1 || got.Requests[0].MMS != "9900000020101" {
		t.Errorf("got %+v", got)
	}
}

func TestARequestMayComeAsXML(t *testing.T) {
	a := open(t, sim.World{}).Send("POST", "/users/u1/requests?mms_id=9900000010101",
		"<user_request><request_type>HOLD</request_type><pickup_location_library>MAIN</pickup_location_library></user_request>",
		"Content-Type: application/xml")
	if got := packtest.Read[request](a); got.Status != "NOT_STARTED" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestTheSameRequestTwiceIsRefused(t *testing.T) {
	c := open(t, sim.World{})
	c.Send("POST", "/users/u1/requests?mms_id=9900000010101", wish)
	if got := code(c.Send("POST", "/users/u1/requests?mms_id=9900000010101", wish)); got != "400 401136" {
		t.Errorf("got %s", got)
	}
}

func TestAJobIsQueuedThenRunsThenIsDone(t *testing.T) {
	c := open(t, sim.World{})
	j := packtest.Read[struct {
		Info struct{ Link string } `json:"additional_info"`
	}](c.Send("POST", "/conf/jobs/M26?op=run", "{}"))
	path := strings.TrimPrefix(j.Info.Link, c.URL)
	var got []string
	for _, d := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		c.Advance(d)
		got = append(got, packtest.Read[struct{ Status struct{ Value string } }](c.Get(path)).Status.Value)
	}
	if diff := cmp.Diff(got, []string{"QUEUED", "RUNNING", "COMPLETED_SUCCESS"}); diff != "" {
		t.Error(diff)
	}
}

type page struct {
	Token    string `xml:"QueryResult>ResumptionToken"`
	Finished bool   `xml:"QueryResult>IsFinished"`
	Rows     []struct {
		Number int `xml:"Column0"`
	} `xml:"QueryResult>ResultXml>rowset>Row"`
}

func TestAnAnalyticsWalkEndsWithAFlagAndThenWithAnError(t *testing.T) {
	c := open(t, sim.World{})
	c.Header.Del("Accept")
	first := packtest.ReadXML[page](c.Get("/analytics/reports?path=/shared/loans&limit=100"))
	last := packtest.ReadXML[page](c.Get("/analytics/reports?token=" + first.Token))
	if len(first.Rows) != 100 || first.Finished || len(last.Rows) != 20 || !last.Finished || last.Token != "" {
		t.Errorf("got %d rows, finished %v, then %d rows, finished %v, token %q",
			len(first.Rows), first.Finished, len(last.Rows), last.Finished, last.Token)
	}
	if got := code(c.Get("/analytics/reports?token="+first.Token, "Accept: application/json")); got != "400 420033" {
		t.Errorf("after the end: got %s", got)
	}
}

func TestAPageOfAWalkThatIsLostIsNotGivenAgain(t *testing.T) {
	c := open(t, sim.World{Steps: "analytics.report: ok, commit-then-504"})
	c.Header.Del("Accept")
	token := packtest.ReadXML[page](c.Get("/analytics/reports?path=/shared/loans&limit=25")).Token
	c.Get("/analytics/reports?token=" + token)
	if got := packtest.ReadXML[page](c.Get("/analytics/reports?token=" + token)).Rows[0].Number; got != 51 {
		t.Errorf("got row %d first, want 51: the rows 26 to 50 are lost", got)
	}
}

func TestAReportInJSONIsATextOfXML(t *testing.T) {
	got := packtest.Read[struct{ Anies []string }](open(t, sim.World{}).Get("/analytics/reports?path=/shared/loans"))
	if len(got.Anies) != 1 || !strings.Contains(got.Anies[0], "<IsFinished>true</IsFinished>") {
		t.Errorf("got %v", got)
	}
}

func TestAReportThatIsNotThereIsAnInternalError(t *testing.T) {
	a := open(t, sim.World{}).Get("/analytics/reports?path=/nowhere")
	if got := code(a); got != "500 INTERNAL_SERVER_ERROR" || !strings.Contains(a.Body, "Path not found") {
		t.Errorf("got %s %s", got, a.Body)
	}
}

func TestAnErrorMayHaveTheStatusOfAnAnswer(t *testing.T) {
	if got := code(open(t, sim.World{Steps: "users.get: envelope"}).Get("/users/u1")); got != "200 INTERNAL_SERVER_ERROR" {
		t.Errorf("got %s", got)
	}
}

func TestAKeyThatIsSwitchedOffStaysOff(t *testing.T) {
	got := open(t, sim.World{Steps: "users.get: expire"}).Statuses(2, "/users/u1")
	if diff := cmp.Diff(got, []int{401, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	a := open(t, sim.World{}).Send("PATCH", "/users/u1", "")
	if got := code(a); got != "405 INVALID_REQUEST" || !strings.Contains(a.Body, "GET /almaws/v1/users/{user}") {
		t.Errorf("got %s %s", got, a.Body)
	}
}
