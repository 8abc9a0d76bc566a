package llm

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// batch is many messages that are made when there is time.
type batch struct {
	ID        string  `json:"id"`
	Type      string  `json:"type"`
	Status    string  `json:"processing_status"`
	Counts    counts  `json:"request_counts"`
	Created   string  `json:"created_at"`
	Expires   string  `json:"expires_at"`
	Ended     *string `json:"ended_at"`
	Cancelled *string `json:"cancel_initiated_at"`
	Results   *string `json:"results_url"`

	requests []wanted
}

type counts struct {
	Processing int `json:"processing"`
	Succeeded  int `json:"succeeded"`
	Errored    int `json:"errored"`
	Canceled   int `json:"canceled"`
	Expired    int `json:"expired"`
}

// wanted is one message of a batch.
type wanted struct {
	ID     string `json:"custom_id"`
	Params prompt `json:"params"`
}

// The pace of a batch.
const (
	batchTime  = 3 * time.Second
	cancelTime = time.Second
	batchLife  = 24 * time.Hour
)

const maxWanted = 10_000

func batches(x *sim.Exchange) *sim.Table[batch] { return sim.Rows[batch](x, "batches") }

func createBatch(x *sim.Exchange) sim.Answer {
	var in struct {
		Requests []wanted `json:"requests"`
	}
	if x.Decode(&in) != nil || len(in.Requests) < 1 || len(in.Requests) > maxWanted {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "requests: from 1 to " + strconv.Itoa(maxWanted) + " are required"})
	}
	seen := map[string]bool{}
	for i, w := range in.Requests {
		if w.ID == "" || seen[w.ID] {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "requests." + strconv.Itoa(i) + ".custom_id: a unique one is required"})
		}
		seen[w.ID] = true
	}
	now := x.Now().UTC()
	b := batch{
		ID: x.ID("msgbatch_"), Type: "message_batch", Status: "in_progress", Created: now.Format(time.RFC3339),
		Expires: now.Add(batchLife).Format(time.RFC3339), Counts: counts{Processing: len(in.Requests)}, requests: in.Requests,
	}
	all := batches(x)
	all.Put(b.ID, b)
	x.Effect("batch", string(x.Body), int64(len(in.Requests)))
	x.After(batchTime, func(now time.Time) { finish(all, b.ID, "in_progress", now) })
	return anthropicDone(x, 200, b.told(x))
}

// finish ends a batch whose state is from: its messages are made, or, if it
// was cancelled, none of them.
func finish(all *sim.Table[batch], id, from string, now time.Time) {
	b, ok := all.Get(id)
	if !ok || b.Status != from {
		return
	}
	at := now.UTC().Format(time.RFC3339)
	b.Status, b.Ended, b.Counts = "ended", &at, counts{}
	for _, w := range b.requests {
		switch {
		case from == "canceling":
			b.Counts.Canceled++
		case w.Params.fault() != nil:
			b.Counts.Errored++
		default:
			b.Counts.Succeeded++
		}
	}
	all.Put(id, b)
}

// told is b as a caller sees it, with the address of its results once it has any.
func (b batch) told(x *sim.Exchange) batch {
	if b.Status == "ended" {
		at := x.URL("/v1/messages/batches/" + b.ID + "/results")
		b.Results = &at
	}
	return b
}

func noBatch(x *sim.Exchange) sim.Answer {
	return x.Refuse(sim.Refusal{Kind: sim.NotFound, Detail: "there is no batch " + x.Value("id")})
}

func getBatch(x *sim.Exchange) sim.Answer {
	b, ok := batches(x).Get(x.Value("id"))
	if !ok {
		return noBatch(x)
	}
	return anthropicDone(x, 200, b.told(x))
}

func listBatches(x *sim.Exchange) sim.Answer {
	limit := 20
	if text := x.Query("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 1000 {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "limit: from 1 to 1000"})
		}
		limit = n
	}
	some, more := after[batch](x, "batches", x.Query("after_id"), limit)
	page := struct {
		Data  []batch `json:"data"`
		More  bool    `json:"has_more"`
		First *string `json:"first_id"`
		Last  *string `json:"last_id"`
	}{Data: []batch{}, More: more}
	for _, b := range some {
		page.Data = append(page.Data, b.told(x))
	}
	if len(some) > 0 {
		page.First, page.Last = &some[0].ID, &some[len(some)-1].ID
	}
	return anthropicDone(x, 200, page)
}

// after gives the newest of a table that come after the one with the id.
func after[T any](x *sim.Exchange, table, id string, limit int) (some []T, more bool) {
	skip := id != ""
	for key, v := range sim.Rows[T](x, table).Newest() {
		switch {
		case skip:
			skip = key != id
		case len(some) == limit:
			return some, true
		default:
			some = append(some, v)
		}
	}
	return some, false
}

// cancelBatch begins to end one; one that ended already stays as it is.
func cancelBatch(x *sim.Exchange) sim.Answer {
	all := batches(x)
	b, ok := all.Get(x.Value("id"))
	if !ok {
		return noBatch(x)
	}
	if b.Status == "in_progress" {
		at := x.Now().UTC().Format(time.RFC3339)
		b.Status, b.Cancelled = "canceling", &at
		all.Put(b.ID, b)
		x.Effect("batch cancel", b.ID, 0)
		x.After(cancelTime, func(now time.Time) { finish(all, b.ID, "canceling", now) })
	}
	return anthropicDone(x, 200, b.told(x))
}

// result is what became of one message.
type result struct {
	Type    string          `json:"type"`
	Message *reply          `json:"message,omitempty"`
	Error   *anthropicError `json:"error,omitempty"`
}

// batchResults is a file of lines, one for each message.
func batchResults(x *sim.Exchange) sim.Answer {
	b, ok := batches(x).Get(x.Value("id"))
	switch {
	case !ok:
		return noBatch(x)
	case b.Status != "ended":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "the batch has not ended; its results are not available yet"})
	}
	var text strings.Builder
	for i, w := range b.requests {
		one := struct {
			ID     string `json:"custom_id"`
			Result result `json:"result"`
		}{ID: w.ID, Result: result{Type: "canceled"}}
		switch bad := w.Params.fault(); {
		case b.Cancelled != nil:
		case bad != nil:
			e := newAnthropicError("invalid_request_error", bad.Detail, "")
			one.Result = result{Type: "errored", Error: &e}
		default:
			r, _ := w.Params.answer(b.ID + "_" + strconv.Itoa(i))
			one.Result = result{Type: "succeeded", Message: &r}
		}
		line, err := json.Marshal(one)
		if err != nil {
			continue // a result can be written
		}
		text.Write(append(line, '\n'))
	}
	return sim.Text(200, "application/x-jsonl", text.String())
}

func deleteBatch(x *sim.Exchange) sim.Answer {
	b, ok := batches(x).Get(x.Value("id"))
	switch {
	case !ok:
		return noBatch(x)
	case b.Status != "ended":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "a batch can be deleted when it has ended; cancel it first"})
	}
	batches(x).Delete(b.ID)
	x.Effect("batch delete", b.ID, 0)
	return anthropicDone(x, 200, struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}{b.ID, "message_batch_deleted"})
}
