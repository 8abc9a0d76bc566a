package token_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/token"
)

// folio is a FOLIO that hands out numbered sessions, counts, and treats a
// refresh token it sees for the second time, or never gave, as theft.
type folio struct {
	password string
	access   time.Duration // life of an access token; default 600 s
	lost     int           // so many answers to a refresh do not arrive
	status   int           // answer to everything, where not 0
	ageless  bool          // cookies without Max-Age
	ahead    time.Duration // of its clock

	mu      sync.Mutex
	n       int
	live    map[string]bool
	logins  []time.Time
	rotates int
	thefts  int
	tenants map[string]bool
}

func (f *folio) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := httptest.NewRecorder()
	if f.tenants == nil {
		f.tenants, f.live = map[string]bool{}, map[string]bool{}
	}
	f.tenants[r.Header.Get("X-Okapi-Tenant")] = true
	switch {
	case f.status != 0:
		w.WriteHeader(f.status)
	case r.URL.Path == "/authn/refresh":
		f.rotate(w, r)
		if f.lost > 0 {
			f.lost--
			return nil, io.ErrUnexpectedEOF
		}
	case r.URL.Path == "/authn/login-with-expiry":
		f.login(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

func (f *folio) login(w http.ResponseWriter, r *http.Request) {
	f.logins = append(f.logins, time.Now())
	var said struct{ Username, Password string }
	_ = json.NewDecoder(r.Body).Decode(&said)
	if said.Username != "sys" || said.Password != f.password {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"errors":[{"message":"Password does not match","parameters":[{"key":"username","value":"sys"}]}]}`)
		return
	}
	f.session(w)
}

func (f *folio) rotate(w http.ResponseWriter, r *http.Request) {
	f.rotates++
	c, err := r.Cookie("folioRefreshToken")
	if err != nil || !f.live[c.Value] {
		f.thefts++
		clear(f.live)
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	delete(f.live, c.Value)
	f.session(w)
}

func (f *folio) session(w http.ResponseWriter) {
	f.n++
	access := f.access
	if access == 0 {
		access = 600 * time.Second
	}
	ticket := fmt.Sprint("refresh-", f.n)
	f.live[ticket] = true
	age := func(d time.Duration) int {
		if f.ageless {
			return 0
		}
		return int(d.Seconds())
	}
	const week = 7 * 24 * time.Hour
	http.SetCookie(w, &http.Cookie{Name: "folioAccessToken", Value: fmt.Sprint("access-", f.n), MaxAge: age(access), Path: "/"})
	http.SetCookie(w, &http.Cookie{Name: "folioRefreshToken", Value: ticket, MaxAge: age(week), Path: "/authn"})
	now := time.Now().Add(f.ahead).UTC()
	w.Header().Set("Date", now.Format(http.TimeFormat))
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"accessTokenExpiration":%q,"refreshTokenExpiration":%q}`,
		now.Add(access).Format(time.RFC3339), now.Add(week).Format(time.RFC3339))
}

// library runs f with a Source that is logged in to api.
func library(t *testing.T, api *folio, f func(t *testing.T, s *token.Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &token.Source{Jitter: -1, Seed: 1, Fetcher: &token.Folio{
			URL: "https://folio.test/", Tenant: "diku", User: "sys", Password: "hunter2", Via: api,
		}}
		defer s.Close()
		f(t, s)
		equal(t, "refresh tokens used twice", api.thefts, 0)
	})
}

// cookie returns the access token in use, or fails the test.
func cookie(t *testing.T, s *token.Source) string {
	t.Helper()
	tok, err := s.Current(t.Context())
	if err != nil {
		t.Fatalf("Current: %v", err)
	}
	return tok.Cookies[0].Value
}

func TestFolioSessionGoesOntoTheRequest(t *testing.T) {
	api := &folio{password: "hunter2"}
	library(t, api, func(t *testing.T, s *token.Source) {
		r := request(t, "https://folio.test/inventory/items")
		rejected(t, s).Apply(r)
		equal(t, "header", r.Header, http.Header{"X-Okapi-Tenant": {"diku"}, "Cookie": {"folioAccessToken=access-1"}})
		equal(t, "tenants", api.tenants, map[string]bool{"diku": true})
	})
}

func TestFolioRotatesInTheBackground(t *testing.T) {
	api := &folio{password: "hunter2"}
	library(t, api, func(t *testing.T, s *token.Source) {
		for n := 1; n <= 5; n++ {
			equal(t, "session", cookie(t, s), fmt.Sprint("access-", n))
			time.Sleep(480 * time.Second)
			synctest.Wait()
		}
		equal(t, "logins", len(api.logins), 1)
		equal(t, "refreshes", api.rotates, 5)
	})
}

func TestFolioLogsInAnewAfterARefreshWhoseOutcomeIsUnknown(t *testing.T) {
	api := &folio{password: "hunter2", lost: 1}
	library(t, api, func(t *testing.T, s *token.Source) {
		cookie(t, s)
		time.Sleep(480 * time.Second)
		synctest.Wait()
		equal(t, "session", cookie(t, s), "access-3")
		equal(t, "logins", len(api.logins), 2)
		time.Sleep(480 * time.Second)
		synctest.Wait()
		equal(t, "session", cookie(t, s), "access-4")
		equal(t, "logins", len(api.logins), 2)
	})
}

func TestFolioLogsInAnewWhenTheRefreshIsRefused(t *testing.T) {
	api := &folio{password: "hunter2"}
	synctest.Test(t, func(t *testing.T) {
		f := &token.Folio{URL: "https://folio.test", User: "sys", Password: "hunter2", Via: api}
		if _, err := f.Fetch(t.Context(), token.Token{}); err != nil {
			t.Fatal(err)
		}
		clear(api.live) // an administrator logged the user out
		tok, err := f.Fetch(t.Context(), token.Token{})
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "session", tok.Cookies[0].Value, "access-2")
		equal(t, "logins", len(api.logins), 2)
		equal(t, "refreshes", api.rotates, 1)
	})
}

func TestFolioNeverSendsARefreshTokenTwiceWhenEverythingFails(t *testing.T) {
	api := &folio{password: "hunter2", lost: 1 << 30}
	library(t, api, func(t *testing.T, s *token.Source) {
		for range 50 {
			old := rejected(t, s)
			_, _ = s.Renew(t.Context(), old)
			time.Sleep(3 * time.Minute)
			synctest.Wait()
		}
	})
}

func TestFolioRefreshTokenNearItsEndIsNotSent(t *testing.T) {
	api := &folio{password: "hunter2"}
	library(t, api, func(t *testing.T, s *token.Source) {
		cookie(t, s)
		s2 := rejected(t, s)
		equal(t, "first", s2.Cookies[0].Value, "access-1")
		time.Sleep(480 * time.Second) // access-2, unasked
		time.Sleep(7*24*time.Hour - 30*time.Second)
		equal(t, "after a week", cookie(t, s), "access-3")
		equal(t, "logins", len(api.logins), 2)
		equal(t, "refreshes", api.rotates, 1)
	})
}

func TestFolioLifeIsTheSameWhateverClockTheServerHas(t *testing.T) {
	for _, api := range []*folio{
		{},
		{ahead: time.Hour, ageless: true},
		{ahead: -time.Hour, ageless: true},
		{ahead: time.Hour},
	} {
		api.password = "hunter2"
		library(t, api, func(t *testing.T, s *token.Source) {
			tok := rejected(t, s)
			equal(t, "life", tok.Expires.Sub(tok.Issued), 600*time.Second)
		})
	}
}

func TestFolioBadLoginsArePausedBeforeTheAccountIsLocked(t *testing.T) {
	api := &folio{password: "changed"}
	library(t, api, func(t *testing.T, s *token.Source) {
		end := time.Now().Add(3 * time.Hour)
		for time.Now().Before(end) { // a poller that asks every second
			if _, err := s.Current(t.Context()); err == nil {
				t.Fatal("logged in")
			}
			time.Sleep(time.Second)
		}
		for i := range api.logins {
			if i >= 3 && api.logins[i].Sub(api.logins[i-3]) <= 10*time.Minute {
				t.Errorf("four logins within ten minutes: %v", api.logins)
			}
		}
		if n := len(api.logins); n < 5 || n > 7 {
			t.Errorf("%d logins in three hours", n)
		}
	})
}

func TestFolioSaysThatAndUntilWhenLoginsArePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &folio{password: "changed"}
		f := &token.Folio{URL: "https://folio.test", User: "sys", Password: "hunter2", Via: api}
		for range 3 {
			_, err := f.Fetch(t.Context(), token.Token{})
			e, ok := errors.AsType[*token.Error](err)
			if !ok || !e.Refused {
				t.Fatalf("got %v", err)
			}
			equal(t, "retry", time.Until(e.RetryAt), time.Minute)
			equal(t, "text", e.Error(), "token source: folio login at folio.test/authn/login-with-expiry: status 422: login refused, 1 in a row; "+
				"paused so that the account is not locked: check tenant, user and password; not tried again before 2000-01-01T00:01:00Z")
		}
		equal(t, "logins", len(api.logins), 1)
	})
}

func TestFolioGoodLoginForgetsTheBadOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &folio{password: "changed"}
		f := &token.Folio{URL: "https://folio.test", User: "sys", Password: "hunter2", Via: api}
		for _, good := range []bool{false, true, false} {
			if good {
				api.password = "hunter2"
			} else {
				api.password = "changed"
				clear(api.live)
			}
			_, err := f.Fetch(t.Context(), token.Token{})
			equal(t, "logged in", err == nil, good)
			if e, ok := errors.AsType[*token.Error](err); ok {
				equal(t, "pause", time.Until(e.RetryAt), time.Minute)
			}
			time.Sleep(time.Minute)
		}
	})
}

func TestFolioOutageIsNoBadLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &folio{password: "hunter2", status: 503}
		f := &token.Folio{URL: "https://folio.test", User: "sys", Password: "hunter2", Via: api}
		for range 10 {
			_, err := f.Fetch(t.Context(), token.Token{})
			if e, ok := errors.AsType[*token.Error](err); !ok || e.Refused || !e.RetryAt.IsZero() {
				t.Fatalf("got %v", err)
			}
		}
		api.status = 0
		if _, err := f.Fetch(t.Context(), token.Token{}); err != nil {
			t.Error(err)
		}
	})
}

func TestFolioWithoutExpiringLoginIsSaid(t *testing.T) {
	f := &token.Folio{URL: "https://folio.test", Via: says(201, `{}`)}
	_, err := f.Fetch(t.Context(), token.Token{})
	if err == nil || !strings.Contains(err.Error(), "sets no folioAccessToken cookie") {
		t.Errorf("got %v", err)
	}
}

func TestFolioSharedByTwoSourcesUsesNoRefreshTokenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &folio{password: "hunter2"}
		f := &token.Folio{URL: "https://folio.test", User: "sys", Password: "hunter2", Via: api}
		a, b := &token.Source{Fetcher: f, Seed: 1}, &token.Source{Fetcher: f, Seed: 2}
		defer a.Close()
		defer b.Close()
		for range 20 {
			cookie(t, a)
			cookie(t, b)
			time.Sleep(7 * time.Minute)
		}
		equal(t, "thefts", api.thefts, 0)
		equal(t, "logins", len(api.logins), 1)
	})
}

func TestFolioIsPrintedWithoutItsSession(t *testing.T) {
	f := &token.Folio{URL: "https://folio.test", User: "sys", Password: "hunter2", Via: &folio{password: "hunter2"}}
	if _, err := f.Fetch(t.Context(), token.Token{}); err != nil {
		t.Fatal(err)
	}
	f.Via, f.Password = nil, ""
	if text := fmt.Sprintf("%v %+v %#v", f, f, f); strings.Contains(text, "refresh-1") {
		t.Errorf("got %s", text)
	}
}
