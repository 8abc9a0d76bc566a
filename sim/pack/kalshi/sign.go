package kalshi

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// skew is how far the time of a signature may be off.
const skew = 5 * time.Second

// authorize lets everybody read the markets, and those who sign the rest.
func authorize(x *sim.Exchange) *sim.Refusal {
	h := x.Request.Header
	key, stamp, signature := h.Get("Kalshi-Access-Key"), h.Get("Kalshi-Access-Timestamp"), h.Get("Kalshi-Access-Signature")
	public := strings.HasPrefix(x.Path, base+"/markets") || strings.HasPrefix(x.Path, base+"/exchange/")
	if public && key == "" {
		return nil
	}
	revoked, _ := sim.Rows[bool](x, "revoked keys").Get(key)
	ms, badTime := strconv.ParseInt(stamp, 10, 64)
	sum, badText := base64.StdEncoding.DecodeString(signature)
	switch {
	case key == "" || stamp == "" || signature == "":
		return unauthorized("KALSHI-ACCESS-KEY, KALSHI-ACCESS-TIMESTAMP and KALSHI-ACCESS-SIGNATURE are required")
	case revoked:
		return unauthorized("the key is not active")
	case badTime != nil || time.UnixMilli(ms).Sub(x.Now()).Abs() > skew:
		return unauthorized("the timestamp is not the present time in milliseconds")
	case badText != nil || len(sum) == 0:
		return unauthorized("the signature is no base64")
	}
	owned, ok := sim.Rows[*rsa.PublicKey](x, "public keys").Get(key)
	if ok && !verified(owned, stamp+x.Request.Method, sum, x.Path, x.Request.URL.Path) {
		return unauthorized("the signature is wrong")
	}
	return nil
}

func unauthorized(detail string) *sim.Refusal {
	return &sim.Refusal{Kind: sim.Unauthorized, Detail: detail}
}

// verified tells whether sum signs one of the paths: the one within the pack,
// or the one that the client saw, which names the case too.
func verified(key *rsa.PublicKey, begin string, sum []byte, paths ...string) bool {
	for _, path := range paths {
		digest := sha256.Sum256([]byte(begin + path))
		options := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
		if rsa.VerifyPSS(key, crypto.SHA256, digest[:], sum, options) == nil {
			return true
		}
	}
	return false
}

// registerKey takes a public key; from then on, signatures with the id that it
// answers are verified. The simulator lets a caller who names KALSHI-ACCESS-KEY
// keep that id.
func registerKey(x *sim.Exchange) sim.Answer {
	var asked struct {
		Name   string `json:"name"`
		Public string `json:"public_key"`
	}
	if x.Decode(&asked) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"name": "…", "public_key": "-----BEGIN PUBLIC KEY-----…"}`})
	}
	key, ok := publicKey(asked.Public)
	if !ok {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "public_key", Detail: "public_key is no RSA public key in PEM"})
	}
	id := x.Credential()
	if id == "" {
		id = x.ID("")
	}
	sim.Rows[*rsa.PublicKey](x, "public keys").Put(id, key)
	x.Effect("api key", id, 0)
	return sim.JSON(201, struct {
		ID string `json:"api_key_id"`
	}{id})
}

func publicKey(text string) (*rsa.PublicKey, bool) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, false
	}
	if key, err := x509.ParsePKCS1PublicKey(block.Bytes); err == nil {
		return key, true
	}
	any, err := x509.ParsePKIXPublicKey(block.Bytes)
	key, ok := any.(*rsa.PublicKey)
	return key, err == nil && ok
}
