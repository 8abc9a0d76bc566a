package llm_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/llm"
	"github.com/heedproject/heed/sim/pack/packtest"
	"github.com/heedproject/heed/sim/rate"
)

const (
	messages = "/v1/messages"
	batches  = "/v1/messages/batches"
	greet    = `{"model":"claude-haiku-4-5","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":"hello there"}]}]}`
)

func anthropic(t *testing.T, w sim.World) *packtest.Client {
	t.Helper()
	c := packtest.Serve(t, llm.Anthropic(), w)
	c.Header.Set("X-Api-Key", "sk-ant-1")
	c.Header.Set("Anthropic-Version", "2023-06-01")
	return c
}

type reply struct {
	Content []struct{ Text string }
	Stop    string `json:"stop_reason"`
	Usage   struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	}
}

func TestAMessageIsAnswered(t *testing.T) {
	c := anthropic(t, sim.World{})
	got := packtest.Read[reply](c.Send("POST", messages, greet))
	if !strings.Contains(got.Content[0].Text, "2 words") || got.Stop != "end_turn" || got.Usage.Input != 3 || got.Usage.Output == 0 {
		t.Errorf("got %+v", got)
	}
}

func TestAMessageIsStreamedEventByEvent(t *testing.T) {
	c := anthropic(t, sim.World{})
	whole := packtest.Read[reply](c.Send("POST", messages, greet))
	a := c.Send("POST", messages, with(greet, "stream", true))
	var types []string
	var text strings.Builder
	for one := range strings.SplitSeq(strings.TrimSpace(a.Body), "\n\n") {
		name, rest, _ := strings.Cut(strings.TrimPrefix(one, "event: "), "\ndata: ")
		var e struct {
			Type  string
			Delta struct{ Text string }
		}
		if err := json.Unmarshal([]byte(rest), &e); err != nil || e.Type != name {
			t.Fatalf("got %q", one)
		}
		text.WriteString(e.Delta.Text)
		if len(types) == 0 || types[len(types)-1] != name {
			types = append(types, name)
		}
	}
	want := []string{"message_start", "content_block_start", "ping", "content_block_delta", "content_block_stop", "message_delta", "message_stop"}
	if diff := cmp.Diff(types, want); diff != "" || text.String() != whole.Content[0].Text {
		t.Errorf("%s, %q", diff, text.String())
	}
}

func TestAStreamMayEndWithAnOverload(t *testing.T) {
	c := anthropic(t, sim.World{Steps: "messages.create: envelope"})
	a := c.Send("POST", messages, with(greet, "stream", true))
	events := data(a)
	if a.Status != 200 || !strings.Contains(a.Body, "event: error\n") || !strings.Contains(events[len(events)-1], "overloaded_error") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

// failure is the status and the type of an error.
func failure(a packtest.Answer) string {
	e := packtest.Read[struct {
		Type  string
		Error struct{ Type string }
	}](a)
	return strconv.Itoa(a.Status) + " " + e.Error.Type
}

func TestAnOverloadIs529(t *testing.T) {
	c := anthropic(t, sim.World{Steps: "messages.create: 529, 504, 500"})
	var got []string
	for range 3 {
		got = append(got, failure(c.Send("POST", messages, greet)))
	}
	if diff := cmp.Diff(got, []string{"529 overloaded_error", "504 timeout_error", "500 api_error"}); diff != "" {
		t.Error(diff)
	}
}

func TestWhatAMessageLacksIsTold(t *testing.T) {
	c := anthropic(t, sim.World{})
	for body, want := range map[string]string{
		`{`: "400 invalid_request_error",
		`{"model":"claude-haiku-4-5","messages":[{"role":"user","content":"x"}]}`:                        "400 invalid_request_error",
		`{"model":"claude-haiku-4-5","max_tokens":9}`:                                                    "400 invalid_request_error",
		`{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"assistant","content":"x"}]}`:    "400 invalid_request_error",
		`{"model":"gpt-4o","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`:                   "404 not_found_error",
		`{"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":{"bad":"x"}}]}`: "400 invalid_request_error",
	} {
		if got := failure(c.Send("POST", messages, body)); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestKeysAndTheVersionAreAskedFor(t *testing.T) {
	c := anthropic(t, sim.World{})
	var got []string
	for _, header := range []string{"X-Api-Key: ", "X-Api-Key: other", "Anthropic-Version: ", "X-Api-Key: sk-ant-empty"} {
		got = append(got, failure(c.Send("POST", messages, greet, header)))
	}
	if diff := cmp.Diff(got, []string{"401 authentication_error", "401 authentication_error", "400 invalid_request_error", "402 billing_error"}); diff != "" {
		t.Error(diff)
	}
}

func TestABodyThatIsTooLargeIsRefusedByTheEdgeInHTML(t *testing.T) {
	c := anthropic(t, sim.World{})
	a := c.Send("POST", messages, strings.Repeat("x", 2<<20))
	if a.Status != 413 || !strings.HasPrefix(a.Body, "<html>") {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

// left are limit, remaining and reset of a limit in the headers.
func left(a packtest.Answer, name string) string {
	h := a.Header
	return h.Get("anthropic-ratelimit-"+name+"-remaining") + "/" + h.Get("anthropic-ratelimit-"+name+"-limit") + " until " + h.Get("anthropic-ratelimit-"+name+"-reset")
}

func TestLimitsAreToldWithInstantsAndTokensInThousands(t *testing.T) {
	c := anthropic(t, sim.World{})
	long := with(`{"model":"claude-haiku-4-5","max_tokens":9}`, "messages", []map[string]string{{"role": "user", "content": strings.Repeat("x", 40_000)}})
	a := c.Send("POST", messages, long) // 10,000 tokens, which come back in 15 s
	got := []string{left(a, "requests"), left(a, "input-tokens"), left(a, "tokens")}
	want := []string{"49/50 until 2026-11-30T12:00:02Z", "30000/40000 until 2026-11-30T12:00:15Z", "30000/40000 until 2026-11-30T12:00:15Z"}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestInputTokensThatAreUsedUpAreA429WithRetryAfter(t *testing.T) {
	c := anthropic(t, sim.World{})
	long := with(`{"model":"claude-haiku-4-5","max_tokens":9}`, "messages", []map[string]string{{"role": "user", "content": strings.Repeat("x", 100_000)}})
	c.Send("POST", messages, long) // 25,000 tokens
	a := c.Send("POST", messages, long)
	// 10,000 of 40,000 a minute are missing.
	if failure(a) != "429 rate_limit_error" || a.Header.Get("Retry-After") != "15" || !strings.Contains(a.Body, "input tokens") {
		t.Errorf("got %d %v %s", a.Status, a.Header, a.Body)
	}
	c.Advance(15 * time.Second)
	if a := c.Send("POST", messages, long); a.Status != 200 {
		t.Errorf("after the wait: got %d %s", a.Status, a.Body)
	}
}

func TestOutputTokensCountWhenTheyWereMade(t *testing.T) {
	c := anthropic(t, sim.World{Limits: []rate.Limit{{Name: "output-tokens", Kind: rate.TokenBucket, Capacity: 40, Refill: 1}}})
	one := packtest.Read[reply](c.Send("POST", messages, greet)).Usage.Output
	second := c.Send("POST", messages, greet).Status
	a := c.Send("POST", messages, greet)
	got := []string{strconv.Itoa(second), failure(a), a.Header.Get("Retry-After")}
	// Two answers are more than forty; one token must be left.
	if diff := cmp.Diff(got, []string{"200", "429 rate_limit_error", strconv.Itoa(2*one - 40 + 1)}); diff != "" || !strings.Contains(a.Body, "output tokens") {
		t.Errorf("%s, %s", diff, a.Body)
	}
	c.Advance(time.Duration(2*one-40+1) * time.Second)
	if a := c.Send("POST", messages, greet); a.Status != 200 {
		t.Errorf("after the wait: got %d %s", a.Status, a.Body)
	}
}

func TestTokensAreCountedWithoutAnAnswer(t *testing.T) {
	c := anthropic(t, sim.World{})
	got := packtest.Read[struct {
		Input int `json:"input_tokens"`
	}](c.Send("POST", messages+"/count_tokens", `{"model":"claude-haiku-4-5","messages":[{"role":"user","content":"hello there"}]}`))
	if got.Input != 3 || c.Case.Effects().Kinds["message"].Count != 0 {
		t.Errorf("got %+v", got)
	}
}

type batch struct {
	ID     string
	Status string                                                 `json:"processing_status"`
	Counts struct{ Processing, Succeeded, Errored, Canceled int } `json:"request_counts"`
	URL    string                                                 `json:"results_url"`
}

const two = `{"requests":[{"custom_id":"a","params":` + greet + `},{"custom_id":"b","params":{"model":"claude-haiku-4-5"}}]}`

func TestABatchIsInProgressThenEndedWithALineForEachMessage(t *testing.T) {
	c := anthropic(t, sim.World{})
	made := packtest.Read[batch](c.Send("POST", batches, two))
	early := c.Get(batches + "/" + made.ID + "/results")
	c.Advance(3 * time.Second)
	ended := packtest.Read[batch](c.Get(batches + "/" + made.ID))
	if made.Status != "in_progress" || made.Counts.Processing != 2 || early.Status != 400 || ended.Status != "ended" || ended.Counts.Succeeded != 1 || ended.Counts.Errored != 1 {
		t.Fatalf("got %+v, %d, %+v", made, early.Status, ended)
	}
	var got []string
	for line := range strings.Lines(c.Get(strings.TrimPrefix(ended.URL, c.URL)).Body) {
		var one struct {
			ID     string `json:"custom_id"`
			Result struct {
				Type    string
				Message *reply
			}
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		got = append(got, one.ID+" "+one.Result.Type+" "+strconv.FormatBool(one.Result.Message != nil))
	}
	if diff := cmp.Diff(got, []string{"a succeeded true", "b errored false"}); diff != "" {
		t.Error(diff)
	}
}

func TestABatchIsCancelledBeforeItEndsAndStaysAsItIsAfter(t *testing.T) {
	c := anthropic(t, sim.World{})
	id := packtest.Read[batch](c.Send("POST", batches, two)).ID
	cancel := func() batch { return packtest.Read[batch](c.Send("POST", batches+"/"+id+"/cancel", "")) }
	first := cancel()
	kept := c.Send("DELETE", batches+"/"+id, "")
	c.Advance(time.Second)
	second := cancel()
	gone := c.Send("DELETE", batches+"/"+id, "")
	if first.Status != "canceling" || second.Status != "ended" || second.Counts.Canceled != 2 || kept.Status != 400 || gone.Status != 200 {
		t.Errorf("got %+v, %+v, %d, %d", first, second, kept.Status, gone.Status)
	}
	if a := c.Get(batches + "/" + id); a.Status != 404 {
		t.Errorf("got %d", a.Status)
	}
}

func TestBatchesAreListedTheNewestFirst(t *testing.T) {
	c := anthropic(t, sim.World{})
	var ids []string
	for range 3 {
		ids = append(ids, packtest.Read[batch](c.Send("POST", batches, two)).ID)
	}
	type page struct {
		Data []batch
		More bool   `json:"has_more"`
		Last string `json:"last_id"`
	}
	first := packtest.Read[page](c.Get(batches + "?limit=2"))
	rest := packtest.Read[page](c.Get(batches + "?limit=2&after_id=" + first.Last))
	if len(first.Data) != 2 || !first.More || first.Data[0].ID != ids[2] || len(rest.Data) != 1 || rest.More || rest.Data[0].ID != ids[0] {
		t.Errorf("got %+v, then %+v", first, rest)
	}
}

func TestABatchNeedsItsOwnNameForEachMessage(t *testing.T) {
	c := anthropic(t, sim.World{})
	for _, body := range []string{`{"requests":[]}`, `{"requests":[{"params":{}}]}`, strings.Replace(two, `"b"`, `"a"`, 1)} {
		if got := failure(c.Send("POST", batches, body)); got != "400 invalid_request_error" {
			t.Errorf("%s: got %q", body, got)
		}
	}
}

func TestAnthropicsModelsAreListedAndFoundByName(t *testing.T) {
	c := anthropic(t, sim.World{})
	list := packtest.Read[struct{ Data []struct{ ID string } }](c.Get("/v1/models"))
	got := []int{c.Get("/v1/models/" + list.Data[0].ID).Status, c.Get("/v1/models/none").Status}
	if diff := cmp.Diff(got, []int{200, 404}); diff != "" {
		t.Error(diff)
	}
}
