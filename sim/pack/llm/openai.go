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

// OpenAI returns the pack openai.
func OpenAI() sim.Pack {
	return sim.Pack{
		Name:       "openai",
		Access:     "Authorization: Bearer KEY that begins with sk-, 401 without; sk-empty… has no credit (429)",
		Hosts:      []string{"api.openai.com"},
		Dialect:    sim.Dialect{Refuse: openaiRefuse, Quota: openaiQuota, Envelope: openaiEnvelope},
		Limits:     openaiLimits,
		Credential: bearer,
		Authorize:  openaiAuthorize,
		Expire:     func(x *sim.Exchange) { sim.Rows[bool](x, "revoked").Put(x.Credential(), true) },
		Operations: []sim.Operation{
			{Name: "models.list", Route: "GET /v1/models", Do: openaiModels},
			{Name: "models.get", Route: "GET /v1/models/{model}", Do: openaiModel},
			{Name: "chat.create", Route: "POST /v1/chat/completions", Do: createChat, CostOf: openaiCost},
			{Name: "responses.create", Route: "POST /v1/responses", Do: createResponse, CostOf: openaiCost},
			{Name: "responses.get", Route: "GET /v1/responses/{id}", Do: getResponse},
			{Name: "responses.cancel", Route: "POST /v1/responses/{id}/cancel", Do: cancelResponse},
			{Name: "responses.delete", Route: "DELETE /v1/responses/{id}", Do: deleteResponse},
			{Name: "embeddings.create", Route: "POST /v1/embeddings", Do: createEmbeddings, CostOf: openaiCost},
		},
	}
}

// Capacities in a minute, of a small account.
const (
	openaiRequests = 500
	openaiTokens   = 40_000
	openaiContext  = 128_000 // tokens that a model can take in
)

var openaiLimits = []rate.Limit{
	{Name: "requests", Kind: rate.TokenBucket, Capacity: openaiRequests, Refill: openaiRequests / 60.0},
	{Name: "tokens", Kind: rate.TokenBucket, Capacity: openaiTokens, Refill: openaiTokens / 60.0, Weighted: true,
		Routes: []string{"POST /v1/chat/completions", "POST /v1/responses", "POST /v1/embeddings"}},
}

// openaiQuota tells of both limits, and until when they are whole again, as a
// duration.
func openaiQuota(an *sim.Answer, told []rate.Told) {
	for _, t := range told {
		an.Set("x-ratelimit-limit-"+t.Limit.Name, strconv.Itoa(int(t.Capacity)))
		an.Set("x-ratelimit-remaining-"+t.Limit.Name, strconv.Itoa(int(t.Remaining)))
		an.Set("x-ratelimit-reset-"+t.Limit.Name, millis(t.Reset).String())
	}
}

// millis rounds up.
func millis(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

func bearer(r *http.Request) string {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

// openaiAuthorize refuses keys that are wrong or without credit, and requests
// that no minute could hold.
func openaiAuthorize(x *sim.Exchange) *sim.Refusal {
	key := x.Credential()
	revoked, _ := sim.Rows[bool](x, "revoked").Get(key)
	switch {
	case key == "":
		return &sim.Refusal{Kind: sim.Unauthorized, Detail: "You didn't provide an API key."}
	case revoked || !strings.HasPrefix(key, "sk-"):
		return &sim.Refusal{Kind: sim.Unauthorized, Field: "invalid_api_key", Detail: "Incorrect API key provided."}
	case strings.HasPrefix(key, "sk-empty"):
		return &sim.Refusal{Kind: sim.Throttled, Field: "insufficient_quota",
			Detail: "You exceeded your current quota, please check your plan and billing details."}
	}
	a := askedOf(x)
	need, most := a.prompt()+a.most(), minute(x)
	if a.prompt() <= openaiContext && most > 0 && need > most {
		return &sim.Refusal{Kind: sim.Throttled, Field: "rate_limit_exceeded", Detail: "Request too large for " + a.Model +
			" on tokens per min (TPM): Limit " + strconv.Itoa(most) + ", Requested " + strconv.Itoa(need) + ". The input or output tokens must be reduced in order to run successfully."}
	}
	return nil
}

// minute is how many tokens fit into one; 0: there is no limit.
func minute(x *sim.Exchange) int {
	all := x.World().Limits
	if all == nil {
		all = openaiLimits
	}
	for _, l := range all {
		if l.Name == "tokens" {
			return int(l.Capacity)
		}
	}
	return 0
}

// asked is what the three operations that cost tokens are asked.
type asked struct {
	Model      string    `json:"model"`
	Messages   []message `json:"messages"`
	Input      input     `json:"input"`
	MaxTokens  *int      `json:"max_tokens"`
	MaxChat    *int      `json:"max_completion_tokens"`
	MaxOutput  *int      `json:"max_output_tokens"`
	Stream     bool      `json:"stream"`
	Background bool      `json:"background"`
	Options    struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Format     string `json:"encoding_format"`
	Dimensions int    `json:"dimensions"`

	bad bool
}

func askedOf(x *sim.Exchange) asked {
	var a asked
	a.bad = len(x.Body) == 0 || x.Decode(&a) != nil
	return a
}

// prompt is how many tokens come in.
func (a asked) prompt() int {
	text, _ := talk(a.Messages)
	n := tokens(text)
	for _, one := range a.Input {
		n += tokens(string(one.Content))
	}
	return n
}

// most is how many tokens may go out; 0: nothing is said.
func (a asked) most() int {
	for _, n := range []*int{a.MaxChat, a.MaxTokens, a.MaxOutput} {
		if n != nil {
			return max(*n, 0)
		}
	}
	return 0
}

// openaiCost is the estimate that is charged before anything is made.
func openaiCost(x *sim.Exchange) float64 {
	a := askedOf(x)
	if n := a.prompt(); n <= openaiContext {
		return float64(max(n+a.most(), 1))
	}
	return 1 // it is refused
}

// openaiError is what stands under "error".
type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func openaiFailed(x *sim.Exchange, status int, e openaiError) sim.Answer {
	return openaiDone(x, status, struct {
		Error openaiError `json:"error"`
	}{e})
}

func openaiDone(x *sim.Exchange, status int, v any) sim.Answer {
	return sim.JSON(status, v).With("x-request-id", x.ID("req_"))
}

// kinds are the type and the code that OpenAI has for a kind.
var openaiKinds = map[sim.Kind][2]string{
	sim.BadRequest:   {"invalid_request_error", ""},
	sim.Unauthorized: {"invalid_request_error", "invalid_api_key"},
	sim.Forbidden:    {"request_forbidden", "unsupported_country_region_territory"},
	sim.NotFound:     {"invalid_request_error", "not_found"},
	sim.Conflict:     {"invalid_request_error", "conflict"},
	sim.Throttled:    {"requests", "rate_limit_exceeded"},
	sim.Banned:       {"request_forbidden", ""},
	sim.Failed:       {"server_error", ""},
	sim.Overloaded:   {"service_unavailable_error", "server_is_overloaded"},
	sim.Unknown:      {"invalid_request_error", ""},
	sim.WrongMethod:  {"invalid_request_error", "method_not_supported"},
	sim.TooLarge:     {"invalid_request_error", ""},
}

func openaiRefuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	kind, ok := openaiKinds[r.Kind]
	if !ok {
		return sim.Plain(x, r) // keys, which it does not know
	}
	e := openaiError{Message: r.Detail, Type: kind[0], Code: optional(kind[1])}
	switch {
	case r.Operations != nil:
		e.Message = "Invalid URL (" + x.Request.Method + " " + x.Path + "). There are: " + strings.Join(r.Operations, ", ")
	case r.Kind == sim.Throttled && r.Field != "":
		e.Code, e.Type = &r.Field, "tokens"
		if r.Field == "insufficient_quota" {
			e.Type = r.Field
		}
	case r.Kind == sim.Throttled:
		e.Type, e.Message = "requests", "Rate limit reached. "+retryIn(r.Wait)
		if r.Limit != nil {
			e.Type = r.Limit.Name
			e.Message = "Rate limit reached on " + e.Type + " per min: Limit " + strconv.Itoa(int(r.Limit.Capacity)) + ". " + retryIn(r.Wait)
		}
	case r.Kind == sim.BadRequest && r.Field != "":
		e.Param = &r.Field
	}
	an := openaiFailed(x, r.StatusOr(r.Kind.DefaultStatus()), e)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	sim.RetryAfter(x, &an, r)
	if r.Kind == sim.Throttled && r.Wait > 0 && !r.Date {
		an.Set("retry-after-ms", strconv.Itoa(int(math.Ceil(float64(r.Wait)/float64(time.Millisecond)))))
	}
	return an
}

// retryIn is the wait in prose.
func retryIn(d time.Duration) string {
	if d <= 0 {
		return "Please try again later."
	}
	return "Please try again in " + millis(d).String() + ". Visit the account page to learn more."
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// openaiEnvelope is an error after 200: in a stream after its first pieces, or
// as the whole body.
func openaiEnvelope(x *sim.Exchange) sim.Answer {
	e := openaiError{Message: "The server had an error while processing your request. Sorry about that!", Type: "server_error"}
	a := askedOf(x)
	if !a.Stream {
		return openaiFailed(x, http.StatusOK, e)
	}
	var s stream
	if strings.HasSuffix(x.Path, "/responses") {
		s.event("response.created", map[string]any{"type": "response.created", "sequence_number": 0})
		s.event("error", map[string]any{"type": "error", "sequence_number": 1, "code": "server_error", "message": e.Message, "param": nil})
		return s.answer()
	}
	c := completion{ID: x.ID("chatcmpl-"), Created: x.Now().Unix(), Model: a.Model}
	words, _ := answerTo("", 0)
	for i, w := range words[:3] {
		s.event("", c.chunk(delta{Role: roleOf(i), Content: &w}, nil))
	}
	s.event("", struct {
		Error openaiError `json:"error"`
	}{e})
	return s.answer()
}

// openaiNames are the models that there are.
var openaiNames = []string{"gpt-4o", "gpt-4o-mini", "text-embedding-3-small", "text-embedding-3-large"}

type openaiInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Owner   string `json:"owned_by"`
}

func openaiModels(x *sim.Exchange) sim.Answer {
	var all []openaiInfo
	for _, name := range openaiNames {
		all = append(all, openaiInfo{name, "model", 1715367049, "system"})
	}
	return openaiDone(x, 200, struct {
		Object string       `json:"object"`
		Data   []openaiInfo `json:"data"`
	}{"list", all})
}

func openaiModel(x *sim.Exchange) sim.Answer {
	if bad := noModel(x, x.Value("model")); bad != nil {
		return *bad
	}
	return openaiDone(x, 200, openaiInfo{x.Value("model"), "model", 1715367049, "system"})
}

// noModel refuses a name that no model has; nil for one that a model has.
func noModel(x *sim.Exchange, name string) *sim.Answer {
	if slices.Contains(openaiNames, name) {
		return nil
	}
	an := openaiFailed(x, http.StatusNotFound, openaiError{Type: "invalid_request_error", Code: optional("model_not_found"),
		Message: "The model `" + name + "` does not exist or you do not have access to it."})
	return &an
}
