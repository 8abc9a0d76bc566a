package llm_test

import (
	"strings"
	"testing"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/llm"
	"github.com/heedproject/heed/sim/pack/packtest"
)

// What the pack says of itself has the shape of the golden exchanges.
func TestOpenAIAnswersLikeItsGoldenExchanges(t *testing.T) {
	post := func(path, body string, header ...string) func(string) packtest.Answer {
		return func(steps string) packtest.Answer {
			return openAI(t, sim.World{Steps: steps}).Send("POST", path, body, header...)
		}
	}
	for name, tt := range map[string]struct {
		steps string
		ask   func(steps string) packtest.Answer
	}{
		"money that is used up, dressed as a throttle": {"", post(chat, hello, "Authorization: Bearer sk-empty")},
		"a model without capacity":                     {"responses.create: 503(after=3s)", post("/v1/responses", say)},
		"a text that is too long":                      {"", post(chat, strings.Replace(hello, "hello", strings.Repeat("long ", 110_000), 1))},
		"a key that is wrong":                          {"", post(chat, hello, "Authorization: Bearer no")},
		"a generation that failed":                     {"chat.create: 500", post(chat, hello)},
		"an error in a 200 that is no object":          {"chat.create: envelope", post(chat, hello)},
		"a good answer, and what remains":              {"", post(chat, hello)},
		"a minute that is used up":                     {"chat.create: 429(after=7s)", post(chat, hello)},
	} {
		want := packtest.Golden(t, llm.OpenAI(), name)
		if short := packtest.Alike(tt.ask(tt.steps), want, "code", "type", "object", "finish_reason"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
	}
}

// What the pack says of itself has the shape of the golden exchanges.
func TestAnthropicAnswersLikeItsGoldenExchanges(t *testing.T) {
	post := func(steps, body string, header ...string) packtest.Answer {
		return anthropic(t, sim.World{Steps: steps}).Send("POST", messages, body, header...)
	}
	for name, got := range map[string]packtest.Answer{
		"a throttle with a wait":                   post("messages.create: throttle(after=61s)", greet),
		"a request that is not valid":              post("", `{"model":"claude-haiku-4-5"}`),
		"no credit":                                post("", greet, "X-Api-Key: sk-ant-empty"),
		"an overload":                              post("messages.create: 529", greet),
		"a conflict":                               post("messages.create: 409", greet),
		"a generation that failed":                 post("messages.create: 500", greet),
		"a request too large, refused by the edge": post("", strings.Repeat("x", 2<<20)),
		"a message":                                post("", greet),
	} {
		want := packtest.Golden(t, llm.Anthropic(), name)
		if short := packtest.Alike(got, want, "type", "stop_reason"); short != "" {
			t.Errorf("%s: got %s", name, short)
		}
		for _, h := range []string{"Retry-After", "Anthropic-Ratelimit-Tokens-Remaining"} {
			if want.Header.Get(h) != "" && got.Header.Get(h) == "" && name == "a message" {
				t.Errorf("%s: got no %s", name, h)
			}
		}
	}
}
