// Package llm simulates the providers of language models: the API of OpenAI
// (chat completions, responses, embeddings, models) and that of Anthropic
// (messages, batches of messages, models).
//
// What OpenAI holds to, from platform.openai.com: buckets of 500 requests and
// 40,000 tokens a minute, of which a request takes its prompt and the most that
// it may answer; x-ratelimit-* with durations such as 6m0s and 17ms; 429 with
// retry-after and retry-after-ms, and the wait in prose; 429 too, with the code
// insufficient_quota, for a key without credit (sk-empty…), where no wait
// helps, and for one request larger than the minute; an error in a stream comes
// after 200. A response with background is queued, runs and is completed.
//
// What Anthropic holds to, from docs.anthropic.com: buckets of 50 requests,
// 40,000 input tokens and 8,000 output tokens a minute, the last counted when
// they were made; anthropic-ratelimit-* with instants, tokens rounded to
// thousands; 429 with retry-after; 529 overloaded_error; 402 billing_error for a
// key without credit (sk-ant-empty…); 413 in HTML. A batch is in progress until
// it is ended, and may be cancelled before.
//
// Neither knows idempotency keys: what is asked twice is made and paid twice,
// which the ledger counts. An answer says how many words the question had, and
// is the same for the same question. Four bytes of a question are a token, and
// so is a word of an answer. Tools and pictures are not known. The pieces of a
// stream follow one another at once; the steps drip and stall slow it down.
package llm

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heedproject/heed/sim"
)

// tokens is what a text costs.
func tokens(text string) int { return (len(text) + 3) / 4 }

// answerTo is what a model says to a question, in at most so many tokens, and
// whether it came to its end.
func answerTo(question string, most int) (words []string, ended bool) {
	n := len(strings.Fields(question))
	text := fmt.Sprintf("Your message has %d words and %d bytes in all. A simulator has counted them, and has nothing to add.", n, len(question))
	words = strings.SplitAfter(text, " ")
	if most > 0 && most < len(words) {
		return words[:most], false
	}
	return words, true
}

// stream writes server-sent events.
type stream struct{ text strings.Builder }

// event adds one; a name of "" is left out.
func (s *stream) event(name string, v any) {
	if name != "" {
		s.text.WriteString("event: " + name + "\n")
	}
	data, err := json.Marshal(v)
	if err != nil {
		return // what is streamed here can be written
	}
	s.text.WriteString("data: ")
	s.text.Write(data)
	s.text.WriteString("\n\n")
}

// answer sends the events one by one.
func (s *stream) answer() sim.Answer {
	an := sim.Text(200, "text/event-stream; charset=utf-8", s.text.String())
	an.Pace = sim.Pace{Split: "\n\n"}
	return an
}

// content is a text, or a list of parts of which those of a text count.
type content string

// UnmarshalJSON takes both forms.
func (c *content) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	err := json.Unmarshal(b, &parts)
	for _, p := range parts {
		if strings.HasSuffix(p.Type, "text") {
			*c += content(p.Text)
		}
	}
	return err
}

// message is one turn of a conversation.
type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

// talk is a conversation as one text, and its last turn.
func talk(all []message) (text, last string) {
	var b strings.Builder
	for _, m := range all {
		b.WriteString(string(m.Content))
		last = string(m.Content)
	}
	return b.String(), last
}
