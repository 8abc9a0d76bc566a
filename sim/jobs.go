package sim

import (
	"encoding/json"
	"time"
)

// job is work that takes time.
type job struct {
	ID string
	Stage
}

// jobLife is that of a job: complete after two seconds or at the third look,
// canceled only before that, and forgotten after an hour.
var jobLife = Life{
	{From: "pending", To: "complete", After: 2 * time.Second, Polls: 3},
	{From: "pending", To: "canceled", On: "cancel"},
	{From: "complete", To: "expired", After: time.Hour},
	{From: "canceled", To: "expired", After: time.Hour},
}

func (j *job) answer(status int) Answer { return JSON(status, j.shown()) }

func (j *job) shown() any {
	return struct {
		ID     string    `json:"id"`
		Status string    `json:"status"`
		Since  time.Time `json:"since"`
	}{j.ID, j.State, j.Since.UTC().Round(0)}
}

func postJob(x *Exchange) Answer {
	j := &job{ID: x.ID("job_")}
	Rows[*job](x, "jobs").Put(j.ID, j)
	jobLife.Begin(x, &j.Stage, "pending", func(string) {
		if j.State != "expired" {
			x.Emit(event(x, "job."+j.State, j.shown()))
		}
	})
	x.Effect("job", "", 0)
	return j.answer(202).With("Location", "/v1/jobs/"+j.ID)
}

func getJob(x *Exchange) Answer {
	j, ok := Rows[*job](x, "jobs").Get(x.Value("id"))
	switch {
	case !ok:
		return x.Refuse(Refusal{Kind: NotFound, Detail: "there is no such job"})
	case j.State == "expired":
		return x.Refuse(Refusal{Kind: NotFound, Status: 410, Detail: "the job has expired"})
	}
	jobLife.Poll(x, &j.Stage)
	return j.answer(200)
}

func cancelJob(x *Exchange) Answer {
	j, ok := Rows[*job](x, "jobs").Get(x.Value("id"))
	switch {
	case !ok:
		return x.Refuse(Refusal{Kind: NotFound, Detail: "there is no such job"})
	case !jobLife.Fire(x, &j.Stage, "cancel"):
		return x.Refuse(Refusal{Kind: Conflict, Detail: "too late: the job is " + j.State})
	}
	return j.answer(200)
}

// event is one in the envelope that Standard Webhooks recommends.
func event(x *Exchange, kind string, data any) Event {
	body, _ := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{kind, x.Now().UTC().Round(0), data}) // of what was shown as JSON before
	return Event{Type: kind, Body: body}
}
