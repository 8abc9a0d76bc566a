package folio_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/folio"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// open is a tenant and a client of it that has not logged in.
func open(t *testing.T, steps string, records int) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, folio.Pack(), sim.World{Steps: steps, Records: records})
	c.Header.Set("X-Okapi-Tenant", "diku")
	return c
}

// pair is what a login gives.
type pair struct{ access, refresh string }

func (p pair) header() string { return "Cookie: folioAccessToken=" + p.access }

func (p pair) renewal() string { return "Cookie: folioRefreshToken=" + p.refresh }

func pairOf(t *testing.T, a packtest.Answer) (p pair) {
	t.Helper()
	if a.Status != 201 {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		switch c.Name {
		case "folioAccessToken":
			p.access = c.Value
		case "folioRefreshToken":
			p.refresh = c.Value
		}
	}
	return p
}

func try(c *packtest.Client, user, password string) packtest.Answer {
	c.T.Helper()
	return c.Send("POST", "/authn/login-with-expiry", fmt.Sprintf(`{"username":%q,"password":%q}`, user, password))
}

func login(c *packtest.Client) pair {
	c.T.Helper()
	return pairOf(c.T, try(c, "diku_admin", "admin"))
}

// enter is a client that has logged in.
func enter(t *testing.T, steps string, records int) *packtest.Client {
	t.Helper()
	c := open(t, steps, records)
	c.Header.Set("Cookie", "folioAccessToken="+login(c).access)
	return c
}

func said(a packtest.Answer) string { return fmt.Sprint(a.Status, " ", a.Body) }

// code is the status and the code of the first error of a 422.
func code(a packtest.Answer) string {
	v := packtest.Read[struct {
		Errors []struct{ Code, Message string }
	}](a)
	if len(v.Errors) == 0 {
		return "no error: " + a.Body
	}
	return fmt.Sprint(a.Status, " ", v.Errors[0].Code)
}

func TestALoginGivesTwoCookiesAndTheirEnds(t *testing.T) {
	a := try(open(t, "", 10), "diku_admin", "admin")
	lives := map[string]int{}
	paths := map[string]string{}
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		lives[c.Name], paths[c.Name] = c.MaxAge, c.Path
	}
	if diff := cmp.Diff(lives, map[string]int{"folioAccessToken": 600, "folioRefreshToken": 604800}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(paths, map[string]string{"folioAccessToken": "/", "folioRefreshToken": "/authn"}); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{"accessTokenExpiration": "2026-11-30T12:10:00Z", "refreshTokenExpiration": "2026-12-07T12:00:00Z"}
	if diff := cmp.Diff(packtest.Read[map[string]string](a), want); diff != "" {
		t.Error(diff)
	}
}

func TestAnAccessTokenLastsTenMinutes(t *testing.T) {
	c := enter(t, "", 10)
	c.Advance(10*time.Minute - 1)
	if a := c.Get("/users"); a.Status != 200 {
		t.Fatalf("got %s", said(a))
	}
	c.Advance(1)
	if got := said(c.Get("/users")); got != "401 Access token has expired" {
		t.Errorf("got %s", got)
	}
}

func TestATokenMayExpireEarly(t *testing.T) {
	got := enter(t, "users.list: ok, expire", 10).Statuses(3, "/users")
	if diff := cmp.Diff(got, []int{200, 401, 401}); diff != "" {
		t.Error(diff)
	}
}

func TestARefreshReplacesBothTokens(t *testing.T) {
	c := open(t, "", 10)
	first := login(c)
	second := pairOf(t, c.Send("POST", "/authn/refresh", "", first.renewal()))
	if second.access == first.access || second.refresh == first.refresh {
		t.Errorf("got %v after %v", second, first)
	}
	if a := c.Get("/users", second.header()); a.Status != 200 {
		t.Errorf("got %s", said(a))
	}
}

func TestARefreshTokenUsedTwiceEndsAllTokensOfItsUser(t *testing.T) {
	c := open(t, "", 10)
	elsewhere, other := login(c), pairOf(t, try(c, "reader1", "admin"))
	first := login(c)
	second := pairOf(t, c.Send("POST", "/authn/refresh", "", first.renewal()))
	if got := code(c.Send("POST", "/authn/refresh", "", first.renewal())); got != "422 token.refresh.unprocessable" {
		t.Errorf("got %s", got)
	}
	for name, p := range map[string]pair{"the new one": second, "one of another login": elsewhere} {
		if a := c.Get("/users", p.header()); a.Status != 401 {
			t.Errorf("%s: got %s", name, said(a))
		}
	}
	if a := c.Get("/users", other.header()); a.Status != 200 {
		t.Errorf("that of another user: got %s", said(a))
	}
}

func TestReplicasThatRefreshAtOnceLogEachOtherOut(t *testing.T) {
	c := open(t, "", 10)
	p := login(c)
	answers := make([]packtest.Answer, 16)
	errs := make([]error, len(answers))
	var replicas sync.WaitGroup
	for i := range answers {
		replicas.Go(func() { answers[i], errs[i] = c.Try("POST", "/authn/refresh", "", p.renewal()) })
	}
	replicas.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for _, a := range answers {
		counts[a.Status]++
		if a.Status == 201 {
			if got := c.Get("/users", pairOf(t, a).header()); got.Status != 401 {
				t.Errorf("the one that won: got %s", said(got))
			}
		}
	}
	if diff := cmp.Diff(counts, map[int]int{201: 1, 422: 15}); diff != "" {
		t.Error(diff)
	}
}

func TestARefreshWhoseAnswerIsLostEndsTheSession(t *testing.T) {
	c := open(t, "authn.refresh: commit-then-504", 10)
	p := login(c)
	lost, again := c.Send("POST", "/authn/refresh", "", p.renewal()), c.Send("POST", "/authn/refresh", "", p.renewal())
	if lost.Status != 504 || again.Status != 422 || c.Case.Effects().Kinds["revocation"].Count != 1 {
		t.Errorf("got %d, then %s, %+v", lost.Status, said(again), c.Case.Effects())
	}
}

func TestARefreshTokenLastsAWeek(t *testing.T) {
	c := open(t, "", 10)
	p := login(c)
	c.Advance(7 * 24 * time.Hour)
	if got := code(c.Send("POST", "/authn/refresh", "", p.renewal())); got != "422 token.refresh.unprocessable" {
		t.Errorf("got %s", got)
	}
}

func TestARefreshWithoutACookieIsRefused(t *testing.T) {
	if a := open(t, "", 10).Send("POST", "/authn/refresh", ""); a.Status != 400 {
		t.Errorf("got %s", said(a))
	}
}

func TestFiveWrongPasswordsLockTheAccountForTenMinutes(t *testing.T) {
	c := open(t, "", 10)
	var got []string
	for range 5 {
		got = append(got, code(try(c, "diku_admin", "wrong")))
	}
	got = append(got, code(try(c, "diku_admin", "admin")))
	want := []string{"422 password.incorrect", "422 password.incorrect", "422 password.incorrect.warn.user",
		"422 password.incorrect.warn.user", "422 password.incorrect.block.user", "422 user.blocked"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
	c.Advance(10*time.Minute - 1)
	if got := code(try(c, "diku_admin", "admin")); got != "422 user.blocked" {
		t.Errorf("before the end: got %s", got)
	}
	c.Advance(1)
	if a := try(c, "diku_admin", "admin"); a.Status != 201 {
		t.Errorf("after the end: got %s", said(a))
	}
}

func TestARightPasswordForgetsTheWrongOnes(t *testing.T) {
	c := open(t, "", 10)
	for range 2 {
		for range 4 {
			try(c, "diku_admin", "wrong")
		}
		if a := try(c, "diku_admin", "admin"); a.Status != 201 {
			t.Errorf("got %s", said(a))
		}
	}
}

func TestTheLegacyLoginGivesATokenThatStays(t *testing.T) {
	c := open(t, "", 10)
	a := c.Send("POST", "/authn/login", `{"username":"diku_admin","password":"admin"}`)
	c.Advance(365 * 24 * time.Hour)
	if got := c.Get("/users", "X-Okapi-Token: "+a.Header.Get("X-Okapi-Token")); got.Status != 200 {
		t.Errorf("got %s", said(got))
	}
}

func TestALogoutEndsTheToken(t *testing.T) {
	c := enter(t, "", 10)
	out, after := c.Send("POST", "/authn/logout", ""), c.Get("/users")
	if out.Status != 204 || after.Status != 401 {
		t.Errorf("got %d, then %s", out.Status, said(after))
	}
}

func TestWhoMayNotComeInIsToldWhyInPlainText(t *testing.T) {
	c := enter(t, "", 10)
	for _, tt := range []struct{ header, want string }{
		{"X-Okapi-Tenant: ", "400 Missing Tenant: send X-Okapi-Tenant"},
		{"Cookie: ", "400 Token missing"},
		{"X-Okapi-Token: x.y", "401 Invalid token"},
		{"X-Okapi-Tenant: other", "403 Token tenant does not match X-Okapi-Tenant"},
	} {
		a := c.Get("/users", tt.header)
		if got := said(a); got != tt.want || a.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s: got %s, %v", tt.header, got, a.Header)
		}
	}
}

const (
	instance = "/instance-storage/instances"
	first    = instance + "/00000002-0000-4000-8000-000000000001"
)

// change reads a record, and sends it back with a field set.
func change(c *packtest.Client, path, field, v string) packtest.Answer {
	c.T.Helper()
	d := packtest.Read[map[string]any](c.Get(path))
	return c.Send("PUT", path, fmt.Sprintf(`{"title":"t","source":"s","instanceTypeId":"i","instanceId":"i","permanentLocationId":"l",
		"_version":%v,%q:%q}`, d["_version"], field, v))
}

func TestAStaleVersionIsAConflict(t *testing.T) {
	c := enter(t, "", 10)
	stale := `{"title":"t","source":"s","instanceTypeId":"i","_version":1}`
	if a := change(c, first, "title", "new"); a.Status != 204 {
		t.Fatalf("got %s", said(a))
	}
	a := c.Send("PUT", first, stale)
	if a.Status != 409 || !strings.Contains(a.Body, "optimistic locking") || a.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("got %s", said(a))
	}
	if a := change(c, first, "title", "newer"); a.Status != 204 {
		t.Errorf("read again: got %s", said(a))
	}
	got := packtest.Read[map[string]any](c.Get(first))
	if got["title"] != "newer" || got["_version"] != 3.0 {
		t.Errorf("got %v", got)
	}
}

func TestWhereAModuleKnowsNo409AStaleVersionIsAFailure(t *testing.T) {
	c := enter(t, "", 10)
	const path = "/holdings-storage/holdings/00000003-0000-4000-8000-000000000001"
	a := c.Send("PUT", path, `{"instanceId":"i","permanentLocationId":"l","_version":7}`)
	if a.Status != 500 || !strings.Contains(a.Body, "SQLSTATE -> 23F09") {
		t.Errorf("got %s", said(a))
	}
}

func TestAnIDThatIsSentAgainExistsAlready(t *testing.T) {
	c := enter(t, "instances.create: commit-then-504", 10)
	const record = `{"id":"aaaaaaaa-0000-4000-8000-000000000001","title":"t","source":"s","instanceTypeId":"i"}`
	lost, again := c.Send("POST", instance, record), c.Send("POST", instance, record)
	if lost.Status != 504 || again.Status != 422 ||
		!strings.Contains(again.Body, "id value already exists in table instance: aaaaaaaa-0000-4000-8000-000000000001") {
		t.Errorf("got %d, then %s", lost.Status, said(again))
	}
	if got := c.Case.Effects().Kinds["instance"].Count; got != 1 {
		t.Errorf("got %d instances made", got)
	}
}

func TestABarcodeIsThereOnce(t *testing.T) {
	a := enter(t, "", 10).Send("POST", "/item-storage/items", `{"barcode":"B1","holdingsRecordId":"h","status":{"name":"Available"},"materialTypeId":"m"}`)
	if a.Status != 422 || !strings.Contains(a.Body, "value already exists in table item: B1") {
		t.Errorf("got %s", said(a))
	}
}

func TestAFieldThatMustBeThereIsNamed(t *testing.T) {
	a := enter(t, "", 10).Send("POST", instance, `{"source":"s"}`)
	if a.Status != 422 || !strings.Contains(a.Body, `"key":"title","value":"null"`) {
		t.Errorf("got %s", said(a))
	}
}

func TestARecordWithoutAnIDGetsOne(t *testing.T) {
	c := enter(t, "", 10)
	a := c.Send("POST", instance, `{"title":"t","source":"s","instanceTypeId":"i"}`)
	if got := c.Get(a.Header.Get("Location")); a.Status != 201 || got.Status != 200 || got.Body != a.Body {
		t.Errorf("got %s, then %s", said(a), said(got))
	}
}

func TestADeletedRecordIsNotFound(t *testing.T) {
	c := enter(t, "", 10)
	gone, after := c.Send("DELETE", first, ""), c.Get(first)
	if gone.Status != 204 || said(after) != "404 Not found" {
		t.Errorf("got %d, then %s", gone.Status, said(after))
	}
}

// total is what a list says of how many there are; -1 if it says nothing.
func total(a packtest.Answer) int {
	v := packtest.Read[struct{ TotalRecords *int }](a)
	if v.TotalRecords == nil {
		return -1
	}
	return *v.TotalRecords
}

func TestATotalIsExactForAFewAndAGuessForMany(t *testing.T) {
	few, many := enter(t, "", 999), enter(t, "", 1600)
	for _, tt := range []struct {
		c     *packtest.Client
		query string
		want  int
	}{
		{few, "", 999},
		{many, "", 1800},
		{many, "?limit=0", 1600},
		{many, "?totalRecords=exact", 1600},
		{many, "?totalRecords=none", -1},
		{many, "?offset=1595", 1600},
		{many, "?offset=1700", 1700},
	} {
		if got := total(tt.c.Get(instance + tt.query)); got != tt.want {
			t.Errorf("%q: got %d, want %d", tt.query, got, tt.want)
		}
	}
}

func TestAWalkByIDSeesEveryRecordOnce(t *testing.T) {
	c := enter(t, "", 25)
	last, seen := "", 0
	for {
		query := "cql.allRecords=1 sortBy id"
		if last != "" {
			query = `id>"` + last + `" sortBy id`
		}
		page := packtest.Read[struct{ Instances []struct{ ID string } }](c.Get(instance + "?query=" + url.QueryEscape(query)))
		for _, r := range page.Instances {
			if r.ID <= last {
				t.Fatalf("got %s after %s", r.ID, last)
			}
			last = r.ID
			seen++
		}
		if len(page.Instances) < 10 {
			break
		}
	}
	if seen != 25 {
		t.Errorf("got %d records, want 25", seen)
	}
}

func TestAQueryThatDoesNotParseIsPlainText(t *testing.T) {
	a := enter(t, "", 10).Get("/users?query=username")
	if a.Status != 400 || !strings.HasPrefix(a.Body, "CQLParseException") {
		t.Errorf("got %s", said(a))
	}
}

func TestARequestIsFilledAndThenAwaitsPickup(t *testing.T) {
	c := enter(t, "", 10)
	made := c.Send("POST", "/circulation/requests", `{"requesterId":"u","itemId":"i","requestType":"Hold"}`)
	path := made.Header.Get("Location")
	c.Advance(2 * time.Second)
	before, after := packtest.Read[map[string]any](made)["status"], packtest.Read[map[string]any](c.Get(path))["status"]
	if before != "Open - Not yet filled" || after != "Open - Awaiting pickup" {
		t.Errorf("got %v, then %v", before, after)
	}
}

func TestARequestThatWasCancelledStaysSo(t *testing.T) {
	c := enter(t, "", 10)
	path := c.Send("POST", "/circulation/requests", `{"requesterId":"u","itemId":"i","requestType":"Hold"}`).Header.Get("Location")
	c.Send("PUT", path, `{"requesterId":"u","itemId":"i","requestType":"Hold","status":"Closed - Cancelled"}`)
	c.Advance(2 * time.Second)
	if got := packtest.Read[map[string]any](c.Get(path))["status"]; got != "Closed - Cancelled" {
		t.Errorf("got %v", got)
	}
}

func TestTheIngressFailsInPlainText(t *testing.T) {
	c := enter(t, "users.list: 502, 503, 429(after=2s), 500", 10)
	for _, want := range []int{502, 503, 429, 500} {
		a := c.Get("/users")
		if a.Status != want || a.Header.Get("Content-Type") != "text/plain" || (want == 429) != (a.Header.Get("Retry-After") == "2") {
			t.Errorf("got %s %v, want %d", said(a), a.Header, want)
		}
	}
}

func TestAUserIsTheSameCallerWithAnotherToken(t *testing.T) {
	c := open(t, "users.list: 503 x2", 10)
	var got []int
	for range 3 {
		got = append(got, c.Get("/users", login(c).header()).Status)
	}
	if diff := cmp.Diff(got, []int{503, 503, 200}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNotThereIsRefusedWithWhatIs(t *testing.T) {
	a := enter(t, "", 10).Get("/finance/funds")
	if a.Status != 404 || !strings.Contains(a.Body, "GET /users") {
		t.Errorf("got %s", said(a))
	}
}
