package llm_test

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/llm"
	"github.com/heedproject/heed/sim/pack/packtest"
)

const (
	chat  = "/v1/chat/completions"
	hello = `{"model":"gpt-4o","messages":[{"role":"user","content":"hello there"}]}`
)

func openAI(t *testing.T, w sim.World) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, llm.OpenAI(), w)
	c.Header.Set("Authorization", "Bearer sk-1")
	return c
}

// told is the status, the type and the code of an error.
func told(a packtest.Answer) string {
	e := packtest.Read[struct{ Error struct{ Type, Code string } }](a).Error
	return strings.TrimSpace(strconv.Itoa(a.Status) + " " + e.Type + " " + e.Code)
}

// with puts a member into a JSON object.
func with(body, name string, v any) string {
	text, _ := json.Marshal(v)
	return body[:len(body)-1] + `,"` + name + `":` + string(text) + `}`
}

type completion struct {
	Object  string
	Choices []struct {
		Message struct{ Role, Content string }
		Delta   struct{ Role, Content string }
		Finish  *string `json:"finish_reason"`
	}
	Usage *struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	Error *struct{ Message string }
}

func TestAChatIsAnsweredTheSameEveryTime(t *testing.T) {
	c := openAI(t, sim.World{})
	one, two := packtest.Read[completion](c.Send("POST", chat, hello)), packtest.Read[completion](c.Send("POST", chat, hello))
	if diff := cmp.Diff(one, two); diff != "" {
		t.Error(diff)
	}
	m := one.Choices[0]
	if m.Message.Role != "assistant" || !strings.Contains(m.Message.Content, "2 words") || *m.Finish != "stop" || one.Usage.Prompt != 3 {
		t.Errorf("got %+v", one)
	}
}

func TestAnAnswerIsCutAtTheMostTokens(t *testing.T) {
	c := openAI(t, sim.World{})
	got := packtest.Read[completion](c.Send("POST", chat, with(hello, "max_completion_tokens", 4)))
	if m := got.Choices[0]; m.Message.Content != "Your message has 2 " || *m.Finish != "length" || got.Usage.Completion != 4 {
		t.Errorf("got %+v", got)
	}
}

// data are the events of a stream.
func data(a packtest.Answer) (all []string) {
	for one := range strings.SplitSeq(strings.TrimSpace(a.Body), "\n\n") {
		_, text, _ := strings.Cut(one, "data: ")
		all = append(all, text)
	}
	return all
}

func TestAStreamAddsUpToTheSameAnswerAndEndsWithDone(t *testing.T) {
	c := openAI(t, sim.World{})
	whole := packtest.Read[completion](c.Send("POST", chat, hello))
	a := c.Send("POST", chat, with(with(hello, "stream", true), "stream_options", map[string]bool{"include_usage": true}))
	events := data(a)
	var text strings.Builder
	var last completion
	for _, e := range events[:len(events)-1] {
		var chunk completion
		if err := json.Unmarshal([]byte(e), &chunk); err != nil {
			t.Fatal(err)
		}
		last = chunk
		for _, ch := range chunk.Choices {
			text.WriteString(ch.Delta.Content)
		}
	}
	if text.String() != whole.Choices[0].Message.Content || events[len(events)-1] != "[DONE]" || last.Usage == nil || len(last.Choices) != 0 {
		t.Errorf("got %q, last %+v, end %q", text.String(), last, events[len(events)-1])
	}
	if got := a.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Errorf("got %q", got)
	}
}

func TestAnErrorMayComeInAStreamAfter200(t *testing.T) {
	c := openAI(t, sim.World{Steps: "chat.create: envelope"})
	a := c.Send("POST", chat, with(hello, "stream", true))
	events := data(a)
	var last completion
	if err := json.Unmarshal([]byte(events[len(events)-1]), &last); err != nil || a.Status != 200 || len(events) != 4 || last.Error == nil {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestWhatAModelIsNotGivenIsRefused(t *testing.T) {
	c := openAI(t, sim.World{})
	for body, want := range map[string]string{
		`{`:                  "400 invalid_request_error",
		`{"messages":[{}]}`:  "400 invalid_request_error",
		`{"model":"gpt-4o"}`: "400 invalid_request_error",
		`{"model":"none","messages":[{"content":"x"}]}`:                                                            "404 invalid_request_error model_not_found",
		with(`{"model":"gpt-4o"}`, "messages", []map[string]string{{"content": strings.Repeat("word ", 110_000)}}): "400 invalid_request_error context_length_exceeded",
	} {
		if got := told(c.Send("POST", chat, body)); got != want {
			t.Errorf("%.60s: got %q, want %q", body, got, want)
		}
	}
}

func TestTokensAreChargedBeforehandWithTheMostThatMayBeAnswered(t *testing.T) {
	c := openAI(t, sim.World{})
	big := with(hello, "max_tokens", 29_997)
	first, second := c.Send("POST", chat, big), c.Send("POST", chat, big)
	got := []string{
		first.Header.Get("x-ratelimit-limit-tokens"), first.Header.Get("x-ratelimit-remaining-tokens"), first.Header.Get("x-ratelimit-reset-tokens"),
		first.Header.Get("x-ratelimit-remaining-requests"), first.Header.Get("x-ratelimit-reset-requests"),
		told(second), second.Header.Get("retry-after"), second.Header.Get("retry-after-ms"),
	}
	// 20,000 tokens are missing, of which 667 come back in a second.
	if diff := cmp.Diff(got, []string{"40000", "10000", "45s", "499", "120ms", "429 tokens rate_limit_exceeded", "30", "30000"}); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(second.Body, "try again in 30s") {
		t.Errorf("got %s", second.Body)
	}
	c.Advance(30 * time.Second)
	if a := c.Send("POST", chat, big); a.Status != 200 {
		t.Errorf("after the wait: got %d", a.Status)
	}
}

func TestARequestThatNoMinuteHoldsIsRefusedForGood(t *testing.T) {
	c := openAI(t, sim.World{})
	a := c.Send("POST", chat, with(hello, "max_tokens", 50_000))
	if told(a) != "429 tokens rate_limit_exceeded" || !strings.Contains(a.Body, "Request too large") || a.Header.Get("retry-after") != "" {
		t.Errorf("got %d %v %s", a.Status, a.Header, a.Body)
	}
	if a := c.Send("POST", chat, hello); a.Status != 200 {
		t.Errorf("a small one: got %d", a.Status)
	}
}

func TestFiveHundredRequestsFitIntoAMinute(t *testing.T) {
	c := openAI(t, sim.World{})
	c.Statuses(500, "/v1/models")
	a := c.Get("/v1/models")
	if told(a) != "429 requests rate_limit_exceeded" || a.Header.Get("retry-after-ms") != "120" || a.Header.Get("x-ratelimit-reset-requests") != "1m0s" {
		t.Errorf("got %d %v", a.Status, a.Header)
	}
}

func TestAKeyWithoutCreditLooksLikeAThrottle(t *testing.T) {
	c := openAI(t, sim.World{})
	a := c.Send("POST", chat, hello, "Authorization: Bearer sk-empty-1")
	if told(a) != "429 insufficient_quota insufficient_quota" || a.Header.Get("retry-after") != "" {
		t.Errorf("got %d %v %s", a.Status, a.Header, a.Body)
	}
}

func TestAKeyThatIsWrongIsNotToldBack(t *testing.T) {
	c := openAI(t, sim.World{})
	a := c.Send("POST", chat, hello, "Authorization: Bearer canary")
	if told(a) != "401 invalid_request_error invalid_api_key" || strings.Contains(a.Body, "canary") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAModelWithoutCapacityIs503(t *testing.T) {
	c := openAI(t, sim.World{Steps: "chat.create: 503(after=3s)"})
	if a := c.Send("POST", chat, hello); told(a) != "503 service_unavailable_error server_is_overloaded" || a.Header.Get("Retry-After") != "3" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAnAnswerThatWasLostIsMadeAndPaidTwice(t *testing.T) {
	c := openAI(t, sim.World{Steps: "chat.create: commit-then-504"})
	for range 2 {
		c.Send("POST", chat, hello, "Idempotency-Key: k")
	}
	if got := c.Case.Effects().Kinds["completion"]; got.Count != 2 || got.Repeated != 1 {
		t.Errorf("got %+v", got)
	}
}

type response struct {
	ID, Status string
	Output     []struct{ Content []struct{ Text string } }
	Usage      *struct {
		Input int `json:"input_tokens"`
	}
	Incomplete *struct{ Reason string } `json:"incomplete_details"`
}

const say = `{"model":"gpt-4o","input":"hello there"}`

func TestAResponseIsKept(t *testing.T) {
	c := openAI(t, sim.World{})
	made := packtest.Read[response](c.Send("POST", "/v1/responses", with(say, "max_output_tokens", 4)))
	kept := packtest.Read[response](c.Get("/v1/responses/" + made.ID))
	if diff := cmp.Diff(kept, made); diff != "" || made.Status != "incomplete" || made.Incomplete.Reason != "max_output_tokens" {
		t.Errorf("%s, %+v", diff, made)
	}
	got := []int{c.Send("DELETE", "/v1/responses/"+made.ID, "").Status, c.Get("/v1/responses/" + made.ID).Status}
	if diff := cmp.Diff(got, []int{200, 404}); diff != "" {
		t.Error(diff)
	}
}

func TestAResponseInTheBackgroundIsQueuedRunsAndIsCompleted(t *testing.T) {
	c := openAI(t, sim.World{})
	made := packtest.Read[response](c.Send("POST", "/v1/responses", with(say, "background", true)))
	var got []string
	for range 3 {
		got = append(got, packtest.Read[response](c.Get("/v1/responses/"+made.ID)).Status)
		c.Advance(2 * time.Second)
	}
	if diff := cmp.Diff(got, []string{"queued", "in_progress", "completed"}); diff != "" {
		t.Error(diff)
	}
}

func TestAResponseInTheBackgroundIsCancelledWhileItRuns(t *testing.T) {
	c := openAI(t, sim.World{})
	id := packtest.Read[response](c.Send("POST", "/v1/responses", with(say, "background", true))).ID
	other := packtest.Read[response](c.Send("POST", "/v1/responses", say)).ID
	first := packtest.Read[response](c.Send("POST", "/v1/responses/"+id+"/cancel", "")).Status
	c.Advance(5 * time.Second)
	last := packtest.Read[response](c.Get("/v1/responses/" + id)).Status
	if a := c.Send("POST", "/v1/responses/"+other+"/cancel", ""); first != "cancelled" || last != "cancelled" || a.Status != 400 {
		t.Errorf("got %s, %s, %d", first, last, a.Status)
	}
}

func TestAResponseIsStreamedWithNumbersInARow(t *testing.T) {
	c := openAI(t, sim.World{})
	events := data(c.Send("POST", "/v1/responses", with(say, "stream", true)))
	var types []string
	var text strings.Builder
	for i, e := range events {
		var one struct {
			Type   string
			Number int `json:"sequence_number"`
			Delta  string
		}
		if err := json.Unmarshal([]byte(e), &one); err != nil || one.Number != i {
			t.Fatalf("event %d: got %s", i, e)
		}
		text.WriteString(one.Delta)
		if len(types) == 0 || types[len(types)-1] != one.Type {
			types = append(types, one.Type)
		}
	}
	want := []string{"response.created", "response.in_progress", "response.output_text.delta", "response.output_text.done", "response.completed"}
	if diff := cmp.Diff(types, want); diff != "" || !strings.HasPrefix(text.String(), "Your message has 2 words") {
		t.Errorf("%s, %q", diff, text.String())
	}
}

func TestAResponseMayFailInItsStream(t *testing.T) {
	c := openAI(t, sim.World{Steps: "responses.create: envelope"})
	a := c.Send("POST", "/v1/responses", with(say, "stream", true))
	if events := data(a); a.Status != 200 || !strings.Contains(events[len(events)-1], `"type":"error"`) {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestEmbeddingsAreTheSameForTheSameTextInBothForms(t *testing.T) {
	c := openAI(t, sim.World{})
	ask := `{"model":"text-embedding-3-small","input":["a","b","a"],"dimensions":3}`
	plain := packtest.Read[struct {
		Data []struct {
			Index     int
			Embedding []float64
		}
	}](c.Send("POST", "/v1/embeddings", ask)).Data
	packed := packtest.Read[struct{ Data []struct{ Embedding string } }](c.Send("POST", "/v1/embeddings", with(ask, "encoding_format", "base64"))).Data
	raw, err := base64.StdEncoding.DecodeString(packed[0].Embedding)
	if diff := cmp.Diff(plain[0].Embedding, plain[2].Embedding); diff != "" || cmp.Equal(plain[0].Embedding, plain[1].Embedding) || err != nil || len(raw) != 12 {
		t.Errorf("%s, %+v, %d bytes, %v", diff, plain, len(raw), err)
	}
	sum := 0.0
	for _, f := range plain[0].Embedding {
		sum += f * f
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("got a length of %v", sum)
	}
}

func TestAnEmbeddingHas1536DimensionsUnlessItIsToldOtherwise(t *testing.T) {
	c := openAI(t, sim.World{})
	got := packtest.Read[struct {
		Data []struct{ Embedding []float64 }
	}](c.Send("POST", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"a"}`))
	if n := len(got.Data[0].Embedding); n != 1536 {
		t.Errorf("got %d", n)
	}
	if got := told(c.Send("POST", "/v1/embeddings", `{"model":"text-embedding-3-small","input":"a","dimensions":5000}`)); got != "400 invalid_request_error" {
		t.Errorf("got %q", got)
	}
}

func TestModelsAreListedAndFoundByName(t *testing.T) {
	c := openAI(t, sim.World{})
	list := packtest.Read[struct{ Data []struct{ ID string } }](c.Get("/v1/models"))
	got := []int{c.Get("/v1/models/" + list.Data[0].ID).Status, c.Get("/v1/models/none").Status}
	if diff := cmp.Diff(got, []int{200, 404}); diff != "" {
		t.Error(diff)
	}
}

func TestARevokedKeyStaysRevoked(t *testing.T) {
	c := openAI(t, sim.World{Steps: "models.list: expire"})
	if diff := cmp.Diff(c.Statuses(2, "/v1/models"), []int{401, 401}); diff != "" {
		t.Error(diff)
	}
}
