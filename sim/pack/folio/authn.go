package folio

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

const (
	accessLife  = 600 * time.Second
	refreshLife = 7 * 24 * time.Hour
	lockTime    = 10 * time.Minute
	maxFailures = 5
	admin       = "diku_admin"
	password    = "admin"
)

// session is one token that was given out.
type session struct {
	Who    string // user@tenant
	Ends   time.Time
	Access bool
}

func sessions(x *sim.Exchange) *sim.Table[session] { return sim.Rows[session](x, "sessions") }

// failures are wrong passwords in a row.
type failures struct {
	Count int
	Last  time.Time
}

func authorize(x *sim.Exchange) *sim.Refusal {
	tenant, token := x.Request.Header.Get("X-Okapi-Tenant"), accessOf(x.Request)
	_, own, _ := strings.Cut(holder(token), "@")
	s, known := sessions(x).Get(token)
	switch {
	case tenant == "":
		return &sim.Refusal{Kind: sim.BadRequest, Detail: "Missing Tenant: send X-Okapi-Tenant"}
	case token == "":
		return &sim.Refusal{Kind: sim.BadRequest, Detail: "Token missing"}
	case own != "" && own != tenant:
		return &sim.Refusal{Kind: sim.Forbidden, Detail: "Token tenant does not match X-Okapi-Tenant"}
	case !known || !s.Access:
		return &sim.Refusal{Kind: sim.Unauthorized, Field: "token", Detail: "Invalid token"}
	case !x.Now().Before(s.Ends):
		return &sim.Refusal{Kind: sim.Unauthorized}
	}
	return nil
}

// expire ends the access token of the request early.
func expire(x *sim.Exchange) {
	token := accessOf(x.Request)
	if s, ok := sessions(x).Get(token); ok {
		s.Ends = x.Now()
		sessions(x).Put(token, s)
	}
}

// check tells who logs in, or what keeps them out.
func check(x *sim.Exchange) (who string, bad *sim.Answer) {
	var sent struct{ Username, Password string }
	tenant := x.Request.Header.Get("X-Okapi-Tenant")
	no := func(an sim.Answer) (string, *sim.Answer) { return "", &an }
	if tenant == "" {
		return no(text(400, "Missing Tenant: send X-Okapi-Tenant"))
	}
	if x.Decode(&sent) != nil || sent.Username == "" {
		return no(text(400, "You must provide a username and a password"))
	}
	who = sent.Username + "@" + tenant
	name := []parameter{{"username", sent.Username}}
	if sent.Username != admin && !isUser(x, sent.Username) {
		return no(unprocessable(problem{Message: "Error verifying user existence: No user found by username " + sent.Username,
			Type: "error", Code: "username.incorrect", Parameters: name}))
	}
	all := sim.Rows[failures](x, "failures")
	f, _ := all.Get(who)
	if x.Now().Sub(f.Last) >= lockTime {
		f = failures{}
	}
	if f.Count >= maxFailures {
		return no(unprocessable(problem{Message: "User account is blocked", Type: "error", Code: "user.blocked", Parameters: name}))
	}
	if sent.Password == password {
		all.Delete(who)
		return who, nil
	}
	f = failures{f.Count + 1, x.Now()}
	all.Put(who, f)
	p := problem{Message: "Password does not match", Type: "error", Code: "password.incorrect", Parameters: name}
	switch {
	case f.Count == maxFailures:
		p.Code = "password.incorrect.block.user"
		x.Effect("lockout", who, 0)
	case f.Count >= 3:
		p.Code = "password.incorrect.warn.user"
	}
	return no(unprocessable(p))
}

func login(x *sim.Exchange) sim.Answer {
	who, bad := check(x)
	if bad != nil {
		return *bad
	}
	x.Effect("login", "", 0)
	return give(x, who)
}

// give hands out a pair of tokens.
func give(x *sim.Exchange, who string) sim.Answer {
	middle := "." + base64.RawURLEncoding.EncodeToString([]byte(who)) + "."
	access, again := x.ID("a")+middle+x.ID(""), x.ID("r")+middle+x.ID("")
	now := x.Now()
	sessions(x).Put(access, session{who, now.Add(accessLife), true})
	sessions(x).Put(again, session{who, now.Add(refreshLife), false})
	an := sim.JSON(201, struct {
		Access  string `json:"accessTokenExpiration"`
		Refresh string `json:"refreshTokenExpiration"`
	}{now.Add(accessLife).UTC().Format(time.RFC3339), now.Add(refreshLife).UTC().Format(time.RFC3339)})
	an.More = [][2]string{
		{"Set-Cookie", fmt.Sprintf("folioAccessToken=%s; Max-Age=%d; Path=/; HttpOnly", access, accessLife/time.Second)},
		{"Set-Cookie", fmt.Sprintf("folioRefreshToken=%s; Max-Age=%d; Path=/authn; HttpOnly", again, refreshLife/time.Second)},
	}
	return an
}

// loginLegacy gives the token that does not expire, which is being removed.
func loginLegacy(x *sim.Exchange) sim.Answer {
	who, bad := check(x)
	if bad != nil {
		return *bad
	}
	token := x.ID("l") + "." + base64.RawURLEncoding.EncodeToString([]byte(who)) + "." + x.ID("")
	sessions(x).Put(token, session{who, x.Now().AddDate(100, 0, 0), true})
	x.Effect("login", "", 0)
	return sim.JSON(201, struct {
		Token string `json:"okapiToken"`
	}{token}).With("X-Okapi-Token", token)
}

// refresh replaces a pair. A token that is not there any more was used before,
// by whoever: all tokens of its user end.
func refresh(x *sim.Exchange) sim.Answer {
	token := refreshOf(x.Request)
	if holder(token) == "" {
		return sim.JSON(400, invalid{[]problem{{Message: "Unable to parse token cookie", Code: "token.parse.failure"}}})
	}
	s, ok := sessions(x).Get(token)
	if !ok || s.Access || !x.Now().Before(s.Ends) {
		revoke(x, holder(token))
		return unprocessable(problem{Message: "Unable to refresh token", Code: "token.refresh.unprocessable"})
	}
	sessions(x).Delete(token)
	x.Effect("refresh", "", 0)
	return give(x, s.Who)
}

func revoke(x *sim.Exchange, who string) {
	ended := 0
	for token, s := range sessions(x).All() {
		if s.Who == who {
			sessions(x).Delete(token)
			ended++
		}
	}
	if ended > 0 {
		x.Effect("revocation", who, int64(ended))
	}
}

func logout(x *sim.Exchange) sim.Answer {
	sessions(x).Delete(accessOf(x.Request))
	sessions(x).Delete(refreshOf(x.Request))
	return empty()
}
