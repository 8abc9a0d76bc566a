package jira

import (
	"net/http"
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
)

// transition is a way from one status to another.
type transition struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	To   struct {
		Name string `json:"name"`
	} `json:"to"`
}

// ways are the transitions out of each status.
var ways = map[string][]transition{
	"To Do":       {way("21", "Start", "In Progress")},
	"In Progress": {way("11", "Stop", "To Do"), way("31", "Finish", "Done")},
	"Done":        {way("41", "Reopen", "In Progress")},
}

func way(id, name, to string) transition {
	t := transition{ID: id, Name: name}
	t.To.Name = to
	return t
}

func listTransitions(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	if !ok {
		return missing(x)
	}
	return sim.JSON(200, struct {
		Transitions []transition `json:"transitions"`
	}{ways[i.Status]})
}

func doTransition(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	if !ok {
		return missing(x)
	}
	var asked struct {
		Transition struct {
			ID string `json:"id"`
		} `json:"transition"`
	}
	if x.Decode(&asked) != nil || asked.Transition.ID == "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "transition", Detail: `send {"transition": {"id": "21"}}`})
	}
	for _, w := range ways[i.Status] {
		if w.ID == asked.Transition.ID {
			i.Status, i.Updated = w.To.Name, x.Now()
			issues(x).Put(i.ID, i)
			x.Effect("transition", "", 0)
			return sim.Answer{Status: http.StatusNoContent}
		}
	}
	return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "It seems that you have tried to perform a workflow operation (" +
		asked.Transition.ID + ") that is not valid for the current state of this issue (" + i.Status + ")."})
}

// comment is a remark to an issue; its body is kept as it came.
type comment struct {
	ID      string `json:"id"`
	Body    any    `json:"body"`
	Created string `json:"created"`
}

func createComment(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	var asked struct {
		Body any `json:"body"`
	}
	switch {
	case !ok:
		return missing(x)
	case x.Decode(&asked) != nil || asked.Body == nil || asked.Body == "":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "comment", Detail: "Comment body can not be empty!"})
	}
	all := sim.Rows[[]comment](x, "comments")
	have, _ := all.Get(i.ID)
	c := comment{x.ID(""), asked.Body, x.Now().UTC().Format(timeForm)}
	all.Put(i.ID, append(have[:len(have):len(have)], c))
	x.Effect("comment", "", 0)
	return sim.JSON(http.StatusCreated, c)
}

func listComments(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	if !ok {
		return missing(x)
	}
	have, _ := sim.Rows[[]comment](x, "comments").Get(i.ID)
	w, bad := windowOf(x, 100)
	if bad != nil {
		return x.Refuse(*bad)
	}
	begin, end := w.of(len(have))
	return sim.JSON(200, struct {
		window
		Total    int       `json:"total"`
		Comments []comment `json:"comments"`
	}{w, len(have), append([]comment{}, have[begin:end]...)})
}

// window is how older lists are cut. The server lowers maxResults to what it
// is willing to give.
type window struct {
	Start int `json:"startAt"`
	Most  int `json:"maxResults"`
}

func windowOf(x *sim.Exchange, most int) (window, *sim.Refusal) {
	w := window{0, 50}
	for name, v := range map[string]*int{"startAt": &w.Start, "maxResults": &w.Most} {
		text := x.Query(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return w, &sim.Refusal{Kind: sim.BadRequest, Field: name, Detail: name + " is a number from 0"}
		}
		*v = n
	}
	w.Most = min(w.Most, most)
	return w, nil
}

// of is the part of a list with n things that w shows.
func (w window) of(n int) (begin, end int) {
	begin = min(w.Start, n)
	return begin, min(begin+w.Most, n)
}

func searchProjects(x *sim.Exchange) sim.Answer {
	w, bad := windowOf(x, 2)
	if bad != nil {
		return x.Refuse(*bad)
	}
	type project struct {
		ID   string `json:"id"`
		Key  string `json:"key"`
		Name string `json:"name"`
	}
	begin, end := w.of(len(projects))
	values := []project{}
	for _, p := range projects[begin:end] {
		values = append(values, project(p))
	}
	return sim.JSON(200, struct {
		window
		Total  int       `json:"total"`
		IsLast bool      `json:"isLast"`
		Values []project `json:"values"`
	}{w, len(projects), end == len(projects), values})
}

// task is a bulk operation at work.
type task struct {
	ID        string   `json:"taskId"`
	Status    string   `json:"status"`
	Percent   int      `json:"progressPercent"`
	Processed []string `json:"processedAccessibleIssues"`
	Invalid   int      `json:"invalidOrInaccessibleIssueCount"`
	Total     int      `json:"totalIssueCount"`
}

// The pace of a bulk operation.
const (
	queueTime = time.Second
	workTime  = 2 * time.Second
)

func bulkDelete(x *sim.Exchange) sim.Answer {
	var asked struct {
		Keys []string `json:"selectedIssueIdsOrKeys"`
	}
	if x.Decode(&asked) != nil || len(asked.Keys) < 1 || len(asked.Keys) > 1000 {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "send selectedIssueIdsOrKeys, from 1 to 1000 of them"})
	}
	tasks := sim.Rows[task](x, "tasks")
	t := task{ID: x.ID(""), Status: "ENQUEUED", Processed: []string{}, Total: len(asked.Keys)}
	tasks.Put(t.ID, t)
	x.Effect("bulk delete", "", 0)
	x.After(queueTime, func(time.Time) {
		t.Status = "RUNNING"
		tasks.Put(t.ID, t)
	})
	x.After(queueTime+workTime, func(time.Time) {
		t.Status, t.Percent = "COMPLETE", 100
		for _, key := range asked.Keys {
			i, ok := find(x, key)
			if !ok {
				t.Invalid++
				continue
			}
			issues(x).Delete(i.ID)
			x.Effect("issue delete", i.ID, 0)
			t.Processed = append(t.Processed, i.ID)
		}
		tasks.Put(t.ID, t)
	})
	return sim.JSON(http.StatusCreated, struct {
		ID string `json:"taskId"`
	}{t.ID})
}

func progress(x *sim.Exchange) sim.Answer {
	t, ok := sim.Rows[task](x, "tasks").Get(x.Value("task"))
	if !ok {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound, Detail: "there is no such task"})
	}
	return sim.JSON(200, t)
}
