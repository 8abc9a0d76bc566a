package llm

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// Anthropic returns the pack anthropic.
func Anthropic() sim.Pack {
	return sim.Pack{
		Name:       "anthropic",
		Access:     "x-api-key that begins with sk-ant-, 401 without; anthropic-version, 400 without; sk-ant-empty… has no credit (402)",
		Hosts:      []string{"api.anthropic.com"},
		Dialect:    sim.Dialect{Refuse: anthropicRefuse, Tell: anthropicTell, Envelope: anthropicEnvelope},
		Limits:     anthropicLimits,
		Credential: func(r *http.Request) string { return r.Header.Get("X-Api-Key") },
		Authorize:  anthropicAuthorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "revoked").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "models.list", Route: "GET /v1/models", Do: anthropicModels},
			{Name: "models.get", Route: "GET /v1/models/{model}", Do: anthropicModel},
			{Name: "messages.create", Route: messages, Do: createMessage, CostOf: inputCost},
			{Name: "messages.count_tokens", Route: "POST /v1/messages/count_tokens", Do: countTokens},
			{Name: "batches.create", Route: "POST /v1/messages/batches", Do: createBatch},
			{Name: "batches.list", Route: "GET /v1/messages/batches", Do: listBatches},
			{Name: "batches.get", Route: "GET /v1/messages/batches/{id}", Do: getBatch},
			{Name: "batches.results", Route: "GET /v1/messages/batches/{id}/results", Do: batchResults},
			{Name: "batches.cancel", Route: "POST /v1/messages/batches/{id}/cancel", Do: cancelBatch},
			{Name: "batches.delete", Route: "DELETE /v1/messages/batches/{id}", Do: deleteBatch},
		},
	}
}

// The limits bear the names that their headers have.
const (
	requestsLimit = "requests"
	inputLimit    = "input-tokens"
	outputLimit   = "output-tokens"
)

const messages = "POST /v1/messages"

// anthropicLimits are those of a minute. Output tokens are known when they were
// made: a request takes one, so that some must be left, and the rest when it
// has made them.
var anthropicLimits = []rate.Limit{
	{Name: requestsLimit, Kind: rate.TokenBucket, Capacity: 50, Refill: 50 / 60.0},
	{Name: inputLimit, Kind: rate.TokenBucket, Capacity: 40_000, Refill: 40_000 / 60.0, Weighted: true, Routes: []string{messages}},
	{Name: outputLimit, Kind: rate.TokenBucket, Capacity: 8_000, Refill: 8_000 / 60.0, Routes: []string{messages}},
}

// anthropicTell tells of every limit, and of the tokens of which least is
// left, until when, as an instant.
func anthropicTell(x *sim.Exchange, an *sim.Answer, told []rate.Told) {
	tell := func(name string, t rate.Told) {
		left := t.Remaining
		if t.Limit.Name != requestsLimit {
			left = math.Round(left/1000) * 1000 // to thousands, docs.anthropic.com
		}
		an.Set("anthropic-ratelimit-"+name+"-limit", strconv.Itoa(int(t.Capacity)))
		an.Set("anthropic-ratelimit-"+name+"-remaining", strconv.Itoa(int(left)))
		an.Set("anthropic-ratelimit-"+name+"-reset", t.End(x.Now()).UTC().Format(time.RFC3339))
	}
	var least rate.Told
	for _, t := range told {
		switch t.Limit.Name {
		case inputLimit, outputLimit:
			if least.Limit == nil || t.Remaining*least.Capacity < least.Remaining*t.Capacity {
				least = t
			}
		case requestsLimit:
		default:
			continue // one that the world was given, which has no headers here
		}
		tell(t.Limit.Name, t)
	}
	if least.Limit != nil {
		tell("tokens", least)
	}
}

func anthropicAuthorize(x *sim.Exchange) *sim.Refusal {
	key := x.Credential()
	revoked, _ := sim.Rows[bool](x, "revoked").Get(key)
	switch {
	case key == "":
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "x-api-key header is required"}
	case revoked || !strings.HasPrefix(key, "sk-ant-"):
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "invalid x-api-key"}
	case x.Request.Header.Get("Anthropic-Version") == "":
		return &sim.Refusal{Kind: sim.BadRequest, Detail: "anthropic-version: header is required"}
	case strings.HasPrefix(key, "sk-ant-empty"):
		return &sim.Refusal{Kind: sim.BadRequest, Status: http.StatusPaymentRequired, Detail: "There is no credit left; see the billing page."}
	}
	return nil
}

// anthropicError is an error of Anthropic's.
type anthropicError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	Request string `json:"request_id,omitempty"`
}

func newAnthropicError(kind, message, request string) anthropicError {
	e := anthropicError{Type: "error", Request: request}
	e.Error.Type, e.Error.Message = kind, message
	return e
}

func anthropicDone(x *sim.Exchange, status int, v any) sim.Answer {
	return sim.JSON(status, v).With("request-id", x.ID("req_"))
}

// anthropicKinds are the type and the status for a kind.
var anthropicKinds = map[sim.Kind]struct {
	kind   string
	status int
}{
	sim.BadRequest:   {"invalid_request_error", 400},
	sim.Unauthorized: {"authentication_error", 401},
	sim.Forbidden:    {"permission_error", 403},
	sim.NotFound:     {"not_found_error", 404},
	sim.Conflict:     {"conflict_error", 409},
	sim.Throttled:    {"rate_limit_error", 429},
	sim.Banned:       {"permission_error", 403},
	sim.Failed:       {"api_error", 500},
	sim.Overloaded:   {"overloaded_error", 529},
	sim.Unknown:      {"not_found_error", 404},
	sim.WrongMethod:  {"invalid_request_error", 405},
}

func anthropicRefuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	w, ok := anthropicKinds[r.Kind]
	switch {
	case r.Kind == sim.TooLarge: // the edge refuses it
		return sim.Text(http.StatusRequestEntityTooLarge, "text/html", "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n</html>\r\n")
	case !ok:
		return sim.Plain(x, r) // keys, which it does not know
	case r.Status == http.StatusPaymentRequired:
		w.kind = "billing_error"
	case r.Status == http.StatusGatewayTimeout:
		w.kind = "timeout_error"
	}
	message := r.Detail
	switch {
	case r.Operations != nil:
		message += "; there are: " + strings.Join(r.Operations, ", ")
	case r.Kind == sim.Overloaded && w.kind == "overloaded_error":
		message = "Overloaded"
	case r.Kind == sim.Throttled && r.Limit != nil:
		message = overLimit(r.Limit)
	}
	id := x.ID("req_")
	an := sim.JSON(r.StatusOr(w.status), newAnthropicError(w.kind, message, id)).With("request-id", id)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	sim.RetryAfter(x, &an, r)
	return an
}

func overLimit(l *rate.Limit) string {
	return "This request would exceed the rate limit of your organization: " + strconv.Itoa(int(l.Capacity)) + " " +
		strings.ReplaceAll(l.Name, "-", " ") + " per minute."
}

// anthropicEnvelope is an error after 200: in a stream after its first pieces,
// or as the whole body.
func anthropicEnvelope(x *sim.Exchange) sim.Answer {
	e := newAnthropicError("overloaded_error", "Overloaded", "")
	a := messageOf(x)
	if !a.Stream {
		return anthropicDone(x, http.StatusOK, e)
	}
	var s stream
	words, _ := answerTo("", 0)
	begin(&s, reply{ID: x.ID("msg_"), Type: "message", Role: "assistant", Model: a.Model, Content: []part{}})
	for _, w := range words[:3] {
		s.event("content_block_delta", blockDelta(w))
	}
	s.event("error", e)
	return s.answer()
}

// anthropicNames are the models that there are.
var anthropicNames = []string{"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"}

type anthropicInfo struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"display_name"`
	Created string `json:"created_at"`
}

func infoOf(name string) anthropicInfo {
	return anthropicInfo{"model", name, strings.ReplaceAll(name, "-", " "), "2025-10-01T00:00:00Z"}
}

func anthropicModels(x *sim.Exchange) sim.Answer {
	page := struct {
		Data  []anthropicInfo `json:"data"`
		More  bool            `json:"has_more"`
		First string          `json:"first_id"`
		Last  string          `json:"last_id"`
	}{First: anthropicNames[0], Last: anthropicNames[len(anthropicNames)-1]}
	for _, name := range anthropicNames {
		page.Data = append(page.Data, infoOf(name))
	}
	return anthropicDone(x, 200, page)
}

func anthropicModel(x *sim.Exchange) sim.Answer {
	if r := unknownModel(x.Value("model")); r != nil {
		return x.Refuse(*r)
	}
	return anthropicDone(x, 200, infoOf(x.Value("model")))
}

func unknownModel(name string) *sim.Refusal {
	if slices.Contains(anthropicNames, name) {
		return nil
	}
	return &sim.Refusal{Kind: sim.NotFound, Detail: "model: " + name}
}
