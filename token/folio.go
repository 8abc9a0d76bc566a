package token

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/heedproject/heed/mask"
)

// Folio logs in to FOLIO (login with expiry) and then rotates its cookies. It
// is used by pointer and not copied.
//
// FOLIO takes a refresh token once: seen twice, it revokes every token of the
// user (mod-authtoken, RefreshTokenStore). So a refresh token is forgotten
// before it is sent, and after a refresh that failed, or whose outcome nobody
// knows, Folio logs in anew. Two processes, or two Folio values, of one user
// each log in for themselves and so do not disturb each other.
//
// FOLIO locks an account after five bad logins within ten minutes (mod-login).
// After a login that is refused the next one waits, longer each time, and the
// error says until when.
type Folio struct {
	// URL is the base of the API; /authn/… is appended. Required.
	URL string
	// Tenant goes into X-Okapi-Tenant, here and on every request. Required.
	Tenant string
	// User and Password are those of the system user. Required.
	User, Password mask.Secret
	// Via sends the requests. nil: a client of its own with timeouts.
	Via http.RoundTripper

	mu      sync.Mutex // held while a fetch is in the air: there is but one session
	refresh *ticket
	bad     int       // logins refused in a row
	locked  time.Time // no login before this
	refusal *Error
}

// ticket is a refresh token that was never sent.
type ticket struct {
	value   mask.Secret
	expires time.Time
}

const (
	accessCookie  = "folioAccessToken"
	refreshCookie = "folioRefreshToken"
	tenantHeader  = "X-Okapi-Tenant"

	folioLife   = 10 * time.Minute // of an access token that says none (mod-authtoken's default)
	refreshLife = time.Hour        // likewise, far below the seven days of the default
	// refreshEnd is how long before its end a refresh token is given up. One
	// that FOLIO has already forgotten counts as used twice.
	refreshEnd = time.Minute
)

// loginPauses follow the first, second … refused login in a row; the last one
// repeats. At most three logins fall into any ten minutes.
var loginPauses = []time.Duration{time.Minute, 6 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour}

// Fetch implements Fetcher.
func (f *Folio) Fetch(ctx context.Context, _ Token) (Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil { // a ticket must not be lost to a request that is never sent
		return Token{}, &Error{Op: "folio login", Err: context.Cause(ctx)}
	}
	if once := f.takeTicket(time.Now()); once != nil {
		t, err := f.rotate(ctx, once)
		if err == nil || ctx.Err() != nil {
			return t, err
		}
	}
	return f.login(ctx)
}

// takeTicket returns the refresh token, if there is a usable one, and forgets it.
func (f *Folio) takeTicket(now time.Time) *ticket {
	t := f.refresh
	f.refresh = nil
	if t == nil || !now.Add(refreshEnd).Before(t.expires) {
		return nil
	}
	return t
}

func (f *Folio) rotate(ctx context.Context, t *ticket) (Token, error) {
	header := f.header()
	header.Set("Cookie", refreshCookie+"="+string(t.value))
	a, err := f.issuer("folio refresh", "/authn/refresh").post(ctx, header, "")
	if err != nil {
		return Token{}, err
	}
	return f.session(a)
}

func (f *Folio) login(ctx context.Context) (Token, error) {
	now := time.Now()
	if now.Before(f.locked) {
		return Token{}, withRetry(f.refusal, f.locked)
	}
	body, err := json.Marshal(map[string]string{"username": string(f.User), "password": string(f.Password)})
	if err != nil {
		return Token{}, &Error{Op: "folio login", Refused: true, Err: why("user and password cannot be sent")}
	}
	a, err := f.issuer("folio login", "/authn/login-with-expiry").post(ctx, f.header(), string(body))
	if e, ok := errors.AsType[*Error](err); ok && e.Refused && e.Status >= 400 {
		return Token{}, f.turnedAway(e)
	}
	if err != nil {
		return Token{}, err
	}
	f.bad, f.locked, f.refusal = 0, time.Time{}, nil
	return f.session(a)
}

// turnedAway notes a refused login.
func (f *Folio) turnedAway(e *Error) *Error {
	f.locked = time.Now().Add(loginPauses[min(f.bad, len(loginPauses)-1)])
	f.bad++
	f.refusal = withRetry(e, f.locked)
	f.refusal.Err = why(fmt.Sprintf("login refused, %d in a row; paused so that the account is not locked: check tenant, user and password", f.bad))
	return f.refusal
}

// session reads the cookies of a login or a refresh.
func (f *Folio) session(a *answer) (Token, error) {
	var said struct {
		Access  time.Time `json:"accessTokenExpiration"`
		Refresh time.Time `json:"refreshTokenExpiration"`
	}
	if json.Unmarshal(a.body, &said) != nil {
		said.Access, said.Refresh = time.Time{}, time.Time{} // the cookies say it too
	}
	t := Token{Header: tenantHeader, Value: mask.Secret(f.Tenant), Issued: a.sent}
	for _, c := range a.Cookies() {
		switch {
		case c.Value == "":
		case c.Name == accessCookie:
			t.Cookies = []*http.Cookie{{Name: accessCookie, Value: c.Value}}
			t.Expires = a.sent.Add(a.life(c, said.Access, folioLife))
		case c.Name == refreshCookie:
			f.refresh = &ticket{mask.Secret(c.Value), a.sent.Add(a.life(c, said.Refresh, refreshLife))}
		}
	}
	if t.Cookies == nil {
		return Token{}, a.fail(why("the answer sets no " + accessCookie + " cookie: this FOLIO may not know login with expiry"))
	}
	return t, nil
}

// life is how long what a cookie holds can be used: the shorter of its Max-Age
// and of the expiration in the body, or otherwise when neither is said. The
// expiration is an instant of the server's clock, and measured against the
// answer's own Date, unless that is more than a day off.
func (a *answer) life(c *http.Cookie, expiration time.Time, otherwise time.Duration) time.Duration {
	life := time.Duration(min(c.MaxAge, int(lifeMax/time.Second))) * time.Second
	if !expiration.IsZero() {
		clock := a.sent
		if date, err := http.ParseTime(a.Header.Get("Date")); err == nil && date.Sub(clock).Abs() < 24*time.Hour {
			clock = date
		}
		if left := expiration.Sub(clock); left > 0 && (life <= 0 || left < life) {
			life = left
		}
	}
	if life <= 0 {
		return otherwise
	}
	return min(life, lifeMax)
}

func (f *Folio) header() http.Header {
	return http.Header{
		"Accept":       {"application/json"},
		"Content-Type": {"application/json"},
		tenantHeader:   {f.Tenant},
	}
}

func (f *Folio) issuer(op, path string) issuer {
	return issuer{op, strings.TrimRight(f.URL, "/") + path, f.Via}
}
