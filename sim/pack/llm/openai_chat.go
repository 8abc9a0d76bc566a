package llm

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

// usage is what was counted.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// delta is a piece of a message.
type delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type choice struct {
	Index   int     `json:"index"`
	Message *said   `json:"message,omitempty"`
	Delta   *delta  `json:"delta,omitempty"`
	Finish  *string `json:"finish_reason"`
}

type said struct {
	Role    string  `json:"role"`
	Content string  `json:"content"`
	Refusal *string `json:"refusal"`
}

// completion is a whole answer, or a piece of one.
type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

// chunk is c as a piece of it is sent in a stream.
func (c completion) chunk(d delta, finish *string) completion {
	c.Object, c.Usage, c.Choices = "chat.completion.chunk", nil, []choice{{Delta: &d, Finish: finish}}
	return c
}

// roleOf is told with the first piece alone.
func roleOf(i int) string {
	if i == 0 {
		return "assistant"
	}
	return ""
}

// check refuses what no model is given.
func (a asked) check(x *sim.Exchange, empty bool, field string) *sim.Answer {
	refuse := func(r sim.Refusal) *sim.Answer {
		an := x.Refuse(r)
		return &an
	}
	switch {
	case a.bad:
		return refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "We could not parse the JSON body of your request."})
	case a.Model == "":
		return refuse(sim.Refusal{Kind: sim.BadRequest, Field: "model", Detail: "you must provide a model parameter"})
	case empty:
		return refuse(sim.Refusal{Kind: sim.BadRequest, Field: field, Detail: "Missing required parameter: '" + field + "'."})
	case a.prompt() > openaiContext:
		an := openaiFailed(x, http.StatusBadRequest, openaiError{Type: "invalid_request_error", Param: &field, Code: optional("context_length_exceeded"),
			Message: "This model's maximum context length is " + strconv.Itoa(openaiContext) + " tokens. However, your messages resulted in " + strconv.Itoa(a.prompt()) + " tokens."})
		return &an
	}
	return noModel(x, a.Model)
}

func createChat(x *sim.Exchange) sim.Answer {
	a := askedOf(x)
	if bad := a.check(x, len(a.Messages) == 0, "messages"); bad != nil {
		return *bad
	}
	_, last := talk(a.Messages)
	words, ended := answerTo(last, a.most())
	finish := "stop"
	if !ended {
		finish = "length"
	}
	u := usage{a.prompt(), len(words), a.prompt() + len(words)}
	x.Effect("completion", string(x.Body), int64(u.Total))
	c := completion{ID: x.ID("chatcmpl-"), Object: "chat.completion", Created: x.Now().Unix(), Model: a.Model, Usage: &u}
	if !a.Stream {
		c.Choices = []choice{{Message: &said{Role: "assistant", Content: strings.Join(words, "")}, Finish: &finish}}
		return openaiDone(x, 200, c)
	}
	var s stream
	for i, w := range words {
		s.event("", c.chunk(delta{Role: roleOf(i), Content: &w}, nil))
	}
	s.event("", c.chunk(delta{}, &finish))
	if a.Options.Usage {
		c.Object, c.Choices = "chat.completion.chunk", []choice{}
		s.event("", c)
	}
	s.text.WriteString("data: [DONE]\n\n")
	return s.answer().With("x-request-id", x.ID("req_"))
}

// input is a text, several texts, or the turns of a conversation.
type input []message

// UnmarshalJSON takes all three forms.
func (in *input) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*in = input{{Content: content(text)}}
		return nil
	}
	var texts []string
	if json.Unmarshal(b, &texts) == nil {
		for _, t := range texts {
			*in = append(*in, message{Content: content(t)})
		}
		return nil
	}
	return json.Unmarshal(b, (*[]message)(in))
}

const maxDimensions = 3072

type embedding struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	Vector any    `json:"embedding"`
}

func createEmbeddings(x *sim.Exchange) sim.Answer {
	a := askedOf(x)
	if bad := a.check(x, len(a.Input) == 0, "input"); bad != nil {
		return *bad
	}
	n := a.Dimensions
	if n == 0 {
		n = 1536
	}
	if n < 1 || n > maxDimensions {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "dimensions", Detail: "dimensions is from 1 to 3072"})
	}
	var all []embedding
	for i, one := range a.Input {
		v := vector(string(one.Content), n)
		e := embedding{"embedding", i, v}
		if a.Format == "base64" {
			e.Vector = base64.StdEncoding.EncodeToString(packed(v))
		}
		all = append(all, e)
	}
	x.Effect("embedding", string(x.Body), int64(a.prompt()))
	return openaiDone(x, 200, struct {
		Object string         `json:"object"`
		Data   []embedding    `json:"data"`
		Model  string         `json:"model"`
		Usage  map[string]int `json:"usage"`
	}{"list", all, a.Model, map[string]int{"prompt_tokens": a.prompt(), "total_tokens": a.prompt()}})
}

// vector is of length one, and the same for the same text.
func vector(text string, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	h := fnv.New64a()
	for i := range v {
		_, _ = h.Write([]byte(text)) // a hash takes all
		v[i] = float32(h.Sum64()>>40)/(1<<23) - 1
		sum += float64(v[i]) * float64(v[i])
		_, _ = h.Write([]byte{byte(i), byte(i >> 8)})
	}
	length := math.Sqrt(max(sum, math.SmallestNonzeroFloat32))
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return v
}

// packed is v as little-endian numbers of 32 bits.
func packed(v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, f := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return b
}
