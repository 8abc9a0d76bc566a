package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
)

// problemPath is where the types of problems lie, on the data port itself. The
// full path stands in every answer, as RFC 9457 §3.1.1 wants of a relative type.
const problemPath = "/_heed/problems/"

// kind is one way in which the gateway answers by itself.
type kind struct {
	name   string
	status int
	// fault is the error type of RFC 9209 §2.3.
	fault string
	title string
	// help says what to do.
	help string
}

// The kinds that end a request before it becomes a call.
var (
	unknownEndpoint = kind{"unknown-endpoint", 404, "http_request_denied", "There is no such endpoint",
		"Send requests to /{endpoint}/{path}, with the name of an endpoint in heed.yaml."}
	badPath = kind{"bad-path", 400, "http_request_error", "The path cannot be used",
		"Send the path as the provider documents it, without .. segments and backslashes."}
	badField = kind{"bad-header", 400, "http_request_error", "A header field cannot be used",
		"Correct the field that the member header names."}
	tooManyFields = kind{"too-many-headers", 431, "http_request_error", "There are too many header fields",
		"Send at most 256 of them."}
	badBody = kind{"bad-body", 400, "http_request_error", "The request body ended early or is not HTTP",
		"Send as many bytes as Content-Length says, or complete chunks."}
	bodyTooLarge = kind{"body-too-large", 413, "http_request_error", "The request body is too large",
		"Send less at once, or raise bounds.body in heed.yaml."}
	answerTooLarge = kind{"answer-too-large", 502, "http_response_body_size", "The answer of the upstream is too large",
		"Ask for less at once, or raise bounds.answer in heed.yaml."}
	badAnswer = kind{"bad-answer", 502, "http_protocol_error", "The upstream answered with a status that is no answer",
		"Check that the url of the endpoint in heed.yaml is an HTTP API."}
	badMethod = kind{"method-not-supported", 405, "http_request_denied", "The gateway does not take this method",
		"heed is no forward proxy: change the base URL of the client instead of its proxy setting. TRACE would repeat credentials."}
	misdirected = kind{"misdirected", 421, "http_request_denied", "The request is not meant for this gateway",
		"heed is no forward proxy and trusts no foreign page: call http://127.0.0.1:{port}/{endpoint}/{path} directly, or configure clients with tokens."}
	noUpgrade = kind{"upgrade-not-supported", 501, "http_upgrade_failed", "Connections cannot be upgraded",
		"A WebSocket cannot be retried: connect to the provider directly."}
	noCallback = kind{"callback-not-supported", 501, "http_request_denied", "Heed-Callback needs the queue, which this gateway does not have",
		"Leave Heed-Callback out and wait for the answer; Heed-Budget says how long."}
	noToken = kind{"token-required", 401, "http_request_denied", "A client token is required",
		"Send it as Authorization: Bearer, or as Heed-Token."}
	outOfScope = kind{"client-not-allowed", 403, "http_request_denied", "The client may not do this",
		"Add the endpoint and the method to the client in heed.yaml."}
	tooManyCalls = kind{"too-many-calls", 503, "connection_limit_reached", "Too many calls are in flight",
		"Try again after Retry-After, or raise bounds.calls in heed.yaml."}
	defect = kind{"internal-error", 500, "proxy_internal_error", "The gateway failed",
		"This is a defect of heed: the log of the process has more."}
	unexplained = kind{"upstream-failed", 502, "http_protocol_error", "The call failed",
		"Look into the log for the call id."}
)

// ends are the kinds that end a call, by reason. Statuses for waits that are
// too long are those of a throttle; throttled is told from overloaded later.
var ends = map[heed.Reason]kind{
	heed.DeadlineExceeded: {"", 504, "http_response_timeout", "The budget of the call is used up",
		"Raise retry.budget of the endpoint, or a shorter Heed-Budget if the call brings one; or try again later."},
	heed.QuotaWait: {"", 429, "proxy_internal_response", "The next permitted instant lies beyond the budget of the call",
		"The API asked for a pause with Retry-After or a quota that is used up. Try again after Retry-After, or raise retry.budget of the endpoint, or a shorter Heed-Budget if the call brings one."},
	heed.OverCeiling: {"", 429, "proxy_internal_response", "The upstream asks for a longer wait than the policy accepts",
		"Try again after Retry-After, or raise retry.ceiling of the endpoint."},
	heed.Deferred: {"", 503, "proxy_internal_response", "The call would have to wait for long",
		"Try again after Retry-After."},
	heed.BreakerOpen: {"", 503, "destination_unavailable", "The upstream is down and is not called",
		"Try again after Retry-After; look at the provider's status page."},
	heed.RetryBudget: {"", 503, "destination_unavailable", "Too many calls of this endpoint are being retried",
		"Try again after Retry-After; the upstream fails for other callers too."},
	heed.AttemptsExhausted: {"", 502, "destination_unavailable", "All attempts failed",
		"Try again later, or raise retry.attempts of the endpoint."},
	heed.NotRepeatable: {"", 502, "connection_terminated", "Nobody knows whether the write was carried out",
		"Find out at the provider before sending it again, or send an Idempotency-Key where the provider honours one."},
	heed.BodyNotReplayable: {"", 502, "connection_terminated", "The request body is too large to be sent a second time",
		"Send the request again."},
	heed.NotAllowed: {"", 403, "http_request_denied", "The endpoint may not be used for this",
		"Add method and path to the allow list of the endpoint in heed.yaml."},
	heed.TokenFailed: {"", 502, "proxy_internal_error", "No credential for the upstream could be had",
		"Check the auth block of the endpoint in heed.yaml and its token server."},
	heed.Canceled: {"", 503, "proxy_internal_response", "The call was given up",
		"Send the request again."},
	heed.PermanentFailure: {"", 502, "http_protocol_error", "The upstream cannot be reached as configured",
		"Check the url of the endpoint in heed.yaml; repeating the call does not help."},
	heed.InvalidAnswer: {"", 502, "http_protocol_error", "The upstream answered with an error dressed as a success",
		"Try again later, or look at the rules of the endpoint."},
	heed.TruncatedAnswer: {"", 502, "http_response_incomplete", "The answer of the upstream was cut short",
		"Try again later."},
	heed.StaleAnswer: {"", 502, "proxy_internal_response", "The upstream answers with an old copy",
		"Try again later, or raise verify.max_age of the endpoint."},
	heed.RetryOff: {"", 502, "destination_unavailable", "The one attempt failed",
		"Send the request again, or let heed do it without Heed-Retry: off."},
}

// problem is the body of RFC 9457, with members of our own.
type problem struct {
	Type       string     `json:"type"`
	Title      string     `json:"title"`
	Status     int        `json:"status"`
	Detail     string     `json:"detail,omitempty"`
	Endpoint   string     `json:"endpoint,omitempty"`
	CallID     string     `json:"call_id,omitempty"`
	Attempts   *int       `json:"attempts,omitempty"`
	LastStatus int        `json:"last_status,omitempty"`
	Class      string     `json:"class,omitempty"`
	Executed   string     `json:"executed,omitempty"`
	Rule       string     `json:"rule,omitempty"`
	RetryAt    *time.Time `json:"retry_at,omitempty"`
	Header     string     `json:"header,omitempty"`
	Endpoints  []string   `json:"endpoints,omitempty"`
	Imported   *imported  `json:"imported,omitempty"`
}

// describe begins the problem of kind k.
func (k *kind) describe() problem {
	return problem{Type: problemPath + k.name, Title: k.title, Status: k.status, Detail: k.help}
}

// refusal is an answer of our own, complete.
type refusal struct {
	kind
	problem
	retryAt time.Time
}

func refuse(k kind, detail string) refusal {
	p := k.describe()
	if detail != "" {
		p.Detail = detail + ". " + p.Detail
	}
	return refusal{kind: k, problem: p}
}

// refusalOf turns the end of a call into an answer.
func refusalOf(e *heed.Error) refusal {
	k, known := ends[e.Reason]
	if !known {
		k = unexplained
	}
	if k.name == "" {
		k.name = string(e.Reason)
	}
	if k.status == http.StatusTooManyRequests && e.Status != http.StatusTooManyRequests && e.Class == classify.Overloaded {
		k.status = http.StatusServiceUnavailable
	}
	if blames[e.Reason] {
		k.blame(e)
	}
	k.explainEnd(e)
	p := k.describe()
	if e.Reason == heed.NotAllowed {
		p.Detail = fmt.Sprintf("The allow list of %s does not have %s for this path. %s", e.Endpoint, e.Method, p.Detail)
	}
	if said := lastSaid(e); said != "" && blames[e.Reason] {
		p.Detail = said + " " + p.Detail
	}
	p.Endpoint, p.CallID, p.LastStatus = e.Endpoint, e.Report.CallID.String(), e.Status
	p.Attempts = &e.Report.Attempts
	if e.Report.Attempts > 0 {
		p.Class, p.Executed, p.Rule = e.Class.String(), e.Executed.String(), e.Report.Rule
	}
	return refusal{k, p, e.RetryAt}
}

// write sends r as the answer. now is needed for Retry-After.
func (r *refusal) write(w http.ResponseWriter, now time.Time) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Heed-Origin", "gateway")
	h.Set("Proxy-Status", r.proxyStatus())
	if !r.retryAt.IsZero() {
		at := r.retryAt.UTC()
		r.RetryAt = &at
	}
	if after := r.retryAfter(now); after > 0 {
		h.Set("Retry-After", strconv.FormatInt(after, 10))
	}
	switch r.kind.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="heed"`)
	case http.StatusMethodNotAllowed:
		if h["Allow"] == nil {
			h.Set("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
		}
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&r.problem); err != nil { // strings and numbers only
		body.Reset()
	}
	whole(w, r.kind.status, body.Bytes())
}

// retryAfter is in whole seconds, rounded up so that nobody comes too early.
// Every 429 and 503 of ours has one; a second is the least that can be said.
func (r *refusal) retryAfter(now time.Time) int64 {
	if r.retryAt.After(now) {
		return int64(math.Ceil(r.retryAt.Sub(now).Seconds()))
	}
	if s := r.kind.status; s == http.StatusTooManyRequests || s == http.StatusServiceUnavailable {
		return 1
	}
	return 0
}

// proxyStatus is a list with one member (RFC 9209 §2).
func (r *refusal) proxyStatus() string {
	var b strings.Builder
	b.WriteString("heed; error=")
	b.WriteString(r.fault)
	if r.LastStatus != 0 {
		b.WriteString("; received-status=")
		b.WriteString(strconv.Itoa(r.LastStatus))
	}
	b.WriteString(`; details="`)
	b.WriteString(r.name)
	b.WriteByte('"')
	return b.String()
}

// endKind is the kind that ends a call for reason.
func endKind(reason heed.Reason) kind {
	k, known := ends[reason]
	if !known {
		return unexplained
	}
	k.name = string(reason)
	return k
}

// kinds are all of them, for the explanations.
func kinds() []kind {
	list := []kind{unknownEndpoint, badPath, badField, tooManyFields, badBody, bodyTooLarge, answerTooLarge, badAnswer, badMethod,
		misdirected, noUpgrade, noCallback, noToken, outOfScope, tooManyCalls, noPage, wrongMethod, defect, unexplained}
	list = append(list, laterKinds...)
	for reason, k := range ends {
		k.name = string(reason)
		list = append(list, k)
	}
	return list
}

// explain serves the document behind the type of a problem.
func explain(w http.ResponseWriter, name string) bool {
	for _, k := range kinds() {
		if k.name == name {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Heed-Origin", "gateway")
			whole(w, http.StatusOK, []byte(k.title+".\n\n"+k.help+"\n"))
			return true
		}
	}
	return false
}
