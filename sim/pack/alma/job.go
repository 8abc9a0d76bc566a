package alma

import (
	"time"

	"github.com/heedproject/heed/sim"
)

const (
	queueTime = 2 * time.Second
	runTime   = 6 * time.Second
)

// instance is one run of a job.
type instance struct {
	XMLName  struct{}  `json:"-" xml:"job_instance"`
	ID       string    `json:"id" xml:"id"`
	Job      string    `json:"job_id" xml:"job_id"`
	Status   value     `json:"status" xml:"status"`
	Progress int       `json:"progress" xml:"progress"`
	At       time.Time `json:"submit_time" xml:"submit_time"`
}

// job is what running one answers.
type job struct {
	XMLName struct{} `json:"-" xml:"job"`
	ID      string   `json:"id" xml:"id"`
	Info    info     `json:"additional_info" xml:"additional_info"`
}

type info struct {
	Value string `json:"value" xml:",chardata"`
	Link  string `json:"link" xml:"link,attr"`
}

// runJob starts an instance at every call: one that is sent twice runs twice.
func runJob(x *sim.Exchange) sim.Answer {
	if x.Query("op") != "run" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "this simulator has op=run"})
	}
	all := sim.Rows[instance](x, "instances")
	i := instance{ID: x.ID(""), Job: x.Value("job"), Status: value{"QUEUED", "Pending"}, At: x.Now().UTC().Truncate(time.Second)}
	all.Put(i.ID, i)
	x.Effect("job", i.Job, 0)
	x.After(queueTime, func(time.Time) {
		i.Status, i.Progress = value{"RUNNING", "Running"}, 50
		all.Put(i.ID, i)
	})
	x.After(runTime, func(time.Time) {
		i.Status, i.Progress = value{"COMPLETED_SUCCESS", "Completed Successfully"}, 100
		all.Put(i.ID, i)
	})
	return done(x, job{ID: i.Job, Info: info{"Job no. " + i.ID + " triggered on " + i.At.Format(time.RFC1123),
		x.URL(root + "/conf/jobs/" + i.Job + "/instances/" + i.ID)}})
}

func getInstance(x *sim.Exchange) sim.Answer {
	i, ok := sim.Rows[instance](x, "instances").Get(x.Value("instance"))
	if !ok || i.Job != x.Value("job") {
		return wrong(x, "402263", "The job instance was not found.")
	}
	return done(x, i)
}
