package github

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// credential is the token, after Bearer or token.
func credential(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if _, pass, ok := r.BasicAuth(); ok {
		return pass
	}
	if strings.EqualFold(kind, "bearer") || strings.EqualFold(kind, "token") {
		return token
	}
	return ""
}

// begins are how tokens begin.
var begins = []string{"ghp_", "gho_", "ghu_", "ghs_", "github_pat_"}

// How many wrong credentials shut everybody out, and for how long they count.
const (
	tooOften = 10
	shutTime = time.Minute
)

// wrong counts credentials that were not accepted.
type wrong struct {
	since time.Time
	count int
}

// authorize lets those in who have a token, and those without one who only
// read. Once credentials were wrong too often it refuses all of them.
func authorize(x *sim.Exchange) *sim.Refusal {
	token := x.Credential()
	if token == "" {
		if x.Request.Method != http.MethodGet && x.Request.Method != http.MethodHead || strings.HasPrefix(x.Path, "/user") {
			return &sim.Refusal{Kind: sim.Unauthorized, Detail: "Requires authentication"}
		}
		return nil
	}
	counts := sim.Rows[wrong](x, "wrong credentials")
	w, _ := counts.Get("")
	if x.Now().Sub(w.since) >= shutTime {
		w = wrong{since: x.Now()}
	}
	revoked, _ := sim.Rows[bool](x, "revoked").Get(token)
	switch {
	case w.count >= tooOften:
		return &sim.Refusal{Kind: sim.Forbidden, Detail: "Maximum number of login attempts exceeded. Please try again later."}
	case revoked || !known(token):
		w.count++
		counts.Put("", w)
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "Bad credentials"}
	}
	return nil
}

func known(token string) bool {
	for _, b := range begins {
		if strings.HasPrefix(token, b) {
			return true
		}
	}
	return false
}

// conditional gives every good answer of do an ETag, and 304 to those who have
// it already.
func conditional(do func(*sim.Exchange) sim.Answer) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		an := do(x)
		if an.Status != http.StatusOK {
			return an
		}
		tag := etag(an)
		if had(x, tag) {
			return sim.Answer{Status: http.StatusNotModified}.With("ETag", tag)
		}
		return an.With("ETag", tag).With("Cache-Control", "private, max-age=60, s-maxage=60").With("Vary", "Accept, Authorization")
	}
}

// readCost is nothing where the answer will be 304, for those with a token.
func readCost(do func(*sim.Exchange) sim.Answer) func(*sim.Exchange) float64 {
	return func(x *sim.Exchange) float64 {
		if x.Credential() != "" && x.Request.Header.Get("If-None-Match") != "" {
			if an := do(x); an.Status == http.StatusOK && had(x, etag(an)) {
				return 0
			}
		}
		return share(x)
	}
}

func etag(an sim.Answer) string {
	sum := sha256.Sum256(an.Body)
	return `W/"` + hex.EncodeToString(sum[:]) + `"`
}

// had tells whether the caller named tag; weak and strong are the same here
// (RFC 9110 §13.1.2).
func had(x *sim.Exchange, tag string) bool {
	for one := range strings.SplitSeq(x.Request.Header.Get("If-None-Match"), ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

func getUser(*sim.Exchange) sim.Answer { return sim.JSON(200, me) }

// person is somebody with an account.
type person struct {
	Login string `json:"login"`
	ID    int    `json:"id"`
	Type  string `json:"type"`
}

var me = person{"octo", 1, "User"}
