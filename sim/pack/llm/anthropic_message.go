package llm

import (
	"strings"

	"github.com/heedproject/heed/sim"
)

// prompt is what a message is asked.
type prompt struct {
	Model    string    `json:"model"`
	Most     int       `json:"max_tokens"`
	System   content   `json:"system"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`

	bad bool
}

func messageOf(x *sim.Exchange) prompt {
	var p prompt
	p.bad = x.Decode(&p) != nil
	return p
}

func (p prompt) tokens() int {
	text, _ := talk(p.Messages)
	return tokens(text) + tokens(string(p.System))
}

// fault says what is wrong with p, or nil.
func (p prompt) fault() *sim.Refusal {
	detail := ""
	switch {
	case p.bad:
		detail = "The request body is not valid JSON."
	case p.Model == "":
		detail = "model: Field required"
	case len(p.Messages) == 0:
		detail = "messages: at least one message is required"
	case p.Most < 1:
		detail = "max_tokens: Field required"
	case p.Messages[0].Role != "user":
		detail = "messages: first message must use the user role"
	default:
		return unknownModel(p.Model)
	}
	return &sim.Refusal{Kind: sim.BadRequest, Detail: detail}
}

// inputCost is at most the capacity: a prompt that no minute holds would wait
// for ever, and is let in by an empty one.
func inputCost(x *sim.Exchange) float64 {
	most := anthropicLimits[1].Capacity
	for _, l := range x.World().Limits {
		if l.Name == inputLimit {
			most = l.Capacity
		}
	}
	return min(float64(max(messageOf(x).tokens(), 1)), most)
}

// reply is what a model answers.
type reply struct {
	ID      string      `json:"id"`
	Type    string      `json:"type"`
	Role    string      `json:"role"`
	Model   string      `json:"model"`
	Content []part      `json:"content"`
	Stop    *string     `json:"stop_reason"`
	Usage   replyTokens `json:"usage"`
}

type replyTokens struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
}

// answer makes the reply to p, and gives its words.
func (p prompt) answer(id string) (r reply, words []string) {
	_, last := talk(p.Messages)
	words, ended := answerTo(last, p.Most)
	stop := "end_turn"
	if !ended {
		stop = "max_tokens"
	}
	return reply{ID: id, Type: "message", Role: "assistant", Model: p.Model, Stop: &stop,
		Content: []part{{"text", strings.Join(words, "")}}, Usage: replyTokens{p.tokens(), len(words)}}, words
}

func createMessage(x *sim.Exchange) sim.Answer {
	p := messageOf(x)
	if bad := p.fault(); bad != nil {
		return x.Refuse(*bad)
	}
	r, words := p.answer(x.ID("msg_"))
	x.Spend(outputLimit, float64(len(words)-1))
	x.Effect("message", string(x.Body), int64(r.Usage.Input+r.Usage.Output))
	if !p.Stream {
		return anthropicDone(x, 200, r)
	}
	var s stream
	begun := r
	begun.Content, begun.Stop, begun.Usage.Output = []part{}, nil, 1
	begin(&s, begun)
	for _, w := range words {
		s.event("content_block_delta", blockDelta(w))
	}
	s.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": 0})
	s.event("message_delta", map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": r.Stop, "stop_sequence": nil},
		"usage": map[string]int{"output_tokens": r.Usage.Output}})
	s.event("message_stop", map[string]string{"type": "message_stop"})
	return s.answer().With("request-id", x.ID("req_"))
}

// begin writes what comes before the first piece of text.
func begin(s *stream, r reply) {
	s.event("message_start", map[string]any{"type": "message_start", "message": r})
	s.event("content_block_start", map[string]any{"type": "content_block_start", "index": 0, "content_block": part{Type: "text"}})
	s.event("ping", map[string]string{"type": "ping"})
}

func blockDelta(text string) map[string]any {
	return map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]string{"type": "text_delta", "text": text}}
}

func countTokens(x *sim.Exchange) sim.Answer {
	p := messageOf(x)
	p.Most = 1 // it is not asked for here
	if bad := p.fault(); bad != nil {
		return x.Refuse(*bad)
	}
	return anthropicDone(x, 200, struct {
		Input int `json:"input_tokens"`
	}{p.tokens()})
}
