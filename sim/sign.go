package sim

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
)

// standardMark begins a secret of Standard Webhooks.
const standardMark = "whsec_"

// SignStandard signs as Standard Webhooks 1.0 has it: webhook-id,
// webhook-timestamp and webhook-signature, version 1. A secret that is no
// base64 after whsec_ is taken as it is.
func SignStandard(m Message) [][2]string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Secret, standardMark))
	if err != nil {
		key = []byte(m.Secret)
	}
	at := strconv.FormatInt(m.Time.Unix(), 10)
	return [][2]string{
		{"Webhook-Id", m.ID},
		{"Webhook-Timestamp", at},
		{"Webhook-Signature", "v1," + base64.StdEncoding.EncodeToString(seal(key, m.ID, ".", at, ".", string(m.Body)))},
	}
}

// SignStripe signs as Stripe does: Stripe-Signature with the time and the
// scheme v1 (docs.stripe.com/webhooks/signature).
func SignStripe(m Message) [][2]string {
	at := strconv.FormatInt(m.Time.Unix(), 10)
	return [][2]string{{"Stripe-Signature",
		"t=" + at + ",v1=" + hex.EncodeToString(seal([]byte(m.Secret), at, ".", string(m.Body)))}}
}

// SignGitHub signs as GitHub does: X-Hub-Signature-256, beside the event and
// the id of the delivery (docs.github.com/webhooks, "Validating webhook
// deliveries").
func SignGitHub(m Message) [][2]string {
	return [][2]string{
		{"X-GitHub-Event", m.Event},
		{"X-GitHub-Delivery", m.ID},
		{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(seal([]byte(m.Secret), string(m.Body)))},
	}
}

// SignShopify signs as Shopify does: X-Shopify-Hmac-Sha256 in base64, beside
// the topic and the id (shopify.dev/docs/apps/build/webhooks).
func SignShopify(m Message) [][2]string {
	return [][2]string{
		{"X-Shopify-Topic", m.Event},
		{"X-Shopify-Webhook-Id", m.ID},
		{"X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(seal([]byte(m.Secret), string(m.Body)))},
	}
}

// seal is the HMAC-SHA256 of all parts in a row.
func seal(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
