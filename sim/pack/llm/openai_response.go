package llm

import (
	"net/http"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// response is what the newer of the two APIs makes, and keeps.
type response struct {
	ID         string         `json:"id"`
	Object     string         `json:"object"`
	Created    int64          `json:"created_at"`
	Status     string         `json:"status"`
	Model      string         `json:"model"`
	Background bool           `json:"background"`
	Error      *openaiError   `json:"error"`
	Incomplete *incomplete    `json:"incomplete_details"`
	Output     []output       `json:"output"`
	Usage      *responseUsage `json:"usage"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type output struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Role    string `json:"role"`
	Status  string `json:"status"`
	Content []part `json:"content"`
}

type part struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type responseUsage struct {
	Input  int `json:"input_tokens"`
	Output int `json:"output_tokens"`
	Total  int `json:"total_tokens"`
}

// The pace of a response in the background.
const (
	queueTime = time.Second
	workTime  = 2 * time.Second
)

func responses(x *sim.Exchange) *sim.Table[response] { return sim.Rows[response](x, "responses") }

func createResponse(x *sim.Exchange) sim.Answer {
	a := askedOf(x)
	if bad := a.check(x, len(a.Input) == 0, "input"); bad != nil {
		return *bad
	}
	_, last := talk(a.Input)
	words, ended := answerTo(last, a.most())
	r := response{ID: x.ID("resp_"), Object: "response", Created: x.Now().Unix(), Status: "queued", Model: a.Model, Background: a.Background, Output: []output{}}
	finished := r
	finished.Status = "completed"
	if !ended {
		finished.Status, finished.Incomplete = "incomplete", &incomplete{"max_output_tokens"}
	}
	finished.Output = []output{{x.ID("msg_"), "message", "assistant", finished.Status, []part{{"output_text", strings.Join(words, "")}}}}
	finished.Usage = &responseUsage{a.prompt(), len(words), a.prompt() + len(words)}
	x.Effect("response", string(x.Body), int64(finished.Usage.Total))
	switch {
	case a.Background:
		all := responses(x)
		all.Put(r.ID, r)
		x.After(queueTime, func(time.Time) { move(all, r.ID, "queued", func(r *response) { r.Status = "in_progress" }) })
		x.After(queueTime+workTime, func(time.Time) { move(all, r.ID, "in_progress", func(r *response) { *r = finished }) })
		return openaiDone(x, 200, r)
	case a.Stream:
		responses(x).Put(r.ID, finished)
		r.Status = "in_progress"
		return responseStream(r, finished, words).With("x-request-id", x.ID("req_"))
	}
	responses(x).Put(r.ID, finished)
	return openaiDone(x, 200, finished)
}

// move changes a response whose state is from.
func move(all *sim.Table[response], id, from string, change func(*response)) {
	if r, ok := all.Get(id); ok && r.Status == from {
		change(&r)
		all.Put(id, r)
	}
}

// responseStream tells of a response as it comes into being.
func responseStream(begun, finished response, words []string) sim.Answer {
	var s stream
	n := 0
	event := func(name string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = name, n
		n++
		s.event(name, fields)
	}
	event("response.created", map[string]any{"response": begun})
	event("response.in_progress", map[string]any{"response": begun})
	item := finished.Output[0].ID
	for _, w := range words {
		event("response.output_text.delta", map[string]any{"item_id": item, "output_index": 0, "content_index": 0, "delta": w})
	}
	event("response.output_text.done", map[string]any{"item_id": item, "output_index": 0, "content_index": 0, "text": strings.Join(words, "")})
	event("response."+finished.Status, map[string]any{"response": finished})
	return s.answer()
}

func noResponse(x *sim.Exchange) sim.Answer {
	return x.Refuse(sim.Refusal{Kind: sim.NotFound, Detail: "Response with id '" + x.Value("id") + "' not found."})
}

func getResponse(x *sim.Exchange) sim.Answer {
	r, ok := responses(x).Get(x.Value("id"))
	if !ok {
		return noResponse(x)
	}
	return openaiDone(x, 200, r)
}

// cancelResponse ends one in the background; one that ended already stays as
// it is.
func cancelResponse(x *sim.Exchange) sim.Answer {
	r, ok := responses(x).Get(x.Value("id"))
	switch {
	case !ok:
		return noResponse(x)
	case !r.Background:
		return openaiFailed(x, http.StatusBadRequest, openaiError{Type: "invalid_request_error", Message: "Cannot cancel a synchronous response."})
	}
	if r.Status == "queued" || r.Status == "in_progress" {
		r.Status = "cancelled"
		responses(x).Put(r.ID, r)
		x.Effect("response cancel", r.ID, 0)
	}
	return openaiDone(x, 200, r)
}

func deleteResponse(x *sim.Exchange) sim.Answer {
	id := x.Value("id")
	if !responses(x).Delete(id) {
		return noResponse(x)
	}
	x.Effect("response delete", id, 0)
	return openaiDone(x, 200, struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{id, "response", true})
}
