package jira

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// issue is one; what the caller sent of its fields is kept as it came.
type issue struct {
	ID      string
	Key     string
	Project string
	Status  string
	Created time.Time
	Updated time.Time
	Fields  map[string]any
}

// projects are the keys of those that there are, with their names.
var projects = []struct{ ID, Key, Name string }{
	{"10000", "DOC", "Documentation"}, {"10001", "HEED", "Heed"}, {"10002", "OPS", "Operations"},
}

// atFirst is how many issues HEED has when nobody made one.
const atFirst = 120

const timeForm = "2006-01-02T15:04:05.000-0700"

// issues is the table by id, with what is there from the beginning.
func issues(x *sim.Exchange) *sim.Table[issue] {
	all := sim.Rows[issue](x, "issues")
	if made := sim.Rows[int](x, "made"); made.Len() == 0 {
		for range atFirst {
			keep(x, all, "HEED", map[string]any{
				"summary": fmt.Sprintf("Measure gauge %d", all.Len()+1), "issuetype": map[string]any{"name": "Task"},
			})
		}
	}
	return all
}

// keep numbers a new issue and puts it into the table.
func keep(x *sim.Exchange, all *sim.Table[issue], project string, fields map[string]any) issue {
	made := sim.Rows[int](x, "made")
	ids, _ := made.Get("")
	n, _ := made.Get(project)
	made.Put("", ids+1)
	made.Put(project, n+1)
	i := issue{
		ID: strconv.Itoa(10_000 + ids), Key: project + "-" + strconv.Itoa(n+1), Project: project,
		Status: "To Do", Created: x.Now(), Updated: x.Now(), Fields: fields,
	}
	all.Put(i.ID, i)
	sim.Rows[string](x, "ids by key").Put(i.Key, i.ID)
	return i
}

// find takes an id or a key.
func find(x *sim.Exchange, name string) (issue, bool) {
	all := issues(x)
	if id, ok := sim.Rows[string](x, "ids by key").Get(strings.ToUpper(name)); ok {
		name = id
	}
	return all.Get(name)
}

func missing(x *sim.Exchange) sim.Answer {
	return x.Refuse(sim.Refusal{Kind: sim.NotFound, Detail: "Issue does not exist or you do not have permission to see it."})
}

// shown is an issue as a caller sees it.
type shown struct {
	ID     string         `json:"id"`
	Key    string         `json:"key,omitempty"`
	Self   string         `json:"self,omitempty"`
	Fields map[string]any `json:"fields,omitempty"`
}

func self(x *sim.Exchange, id string) string {
	return x.URL(base + "/issue/" + id)
}

// show gives the fields that were asked for; none named means all.
func (i issue) show(x *sim.Exchange, names []string) shown {
	all := maps.Clone(i.Fields)
	all["status"] = map[string]any{"name": i.Status}
	all["project"] = map[string]any{"key": i.Project}
	all["created"], all["updated"] = i.Created.UTC().Format(timeForm), i.Updated.UTC().Format(timeForm)
	if len(names) > 0 && !slices.Contains(names, "*all") && !slices.Contains(names, "*navigable") {
		maps.DeleteFunc(all, func(name string, _ any) bool { return !slices.Contains(names, name) })
	}
	return shown{i.ID, i.Key, self(x, i.ID), all}
}

// draft is the body of a create or an edit.
type draft struct {
	Fields map[string]any `json:"fields"`
}

// check says which fields are at fault.
func (d draft) check() (project string, faults map[string]string) {
	faults = map[string]string{}
	if p, ok := d.Fields["project"].(map[string]any); ok {
		if project, ok = p["key"].(string); !ok {
			project, _ = p["id"].(string)
		}
	}
	known := slices.IndexFunc(projects, func(p struct{ ID, Key, Name string }) bool { return p.Key == project || p.ID == project })
	if known < 0 {
		faults["project"] = "Specify a valid project ID or key"
	} else {
		project = projects[known].Key
	}
	if text, ok := d.Fields["summary"].(string); !ok || strings.TrimSpace(text) == "" {
		faults["summary"] = "You must specify a summary of the issue."
	}
	if _, ok := d.Fields["issuetype"].(map[string]any); !ok {
		faults["issuetype"] = "Specify an issue type"
	}
	return project, faults
}

func createIssue(x *sim.Exchange) sim.Answer {
	var d draft
	if x.Decode(&d) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"fields": {"project": {"key": "HEED"}, "issuetype": {"name": "Task"}, "summary": "…"}}`})
	}
	i, faults := add(x, d)
	if len(faults) > 0 {
		return sim.JSON(http.StatusBadRequest, trouble{[]string{}, faults})
	}
	return sim.JSON(http.StatusCreated, i.brief(x))
}

// brief is what a create answers.
func (i issue) brief(x *sim.Exchange) shown { return shown{ID: i.ID, Key: i.Key, Self: self(x, i.ID)} }

// add makes an issue. The ledger knows it by project and summary: there is no
// key that would keep a caller from making it twice.
func add(x *sim.Exchange, d draft) (issue, map[string]string) {
	project, faults := d.check()
	if len(faults) > 0 {
		return issue{}, faults
	}
	delete(d.Fields, "project")
	i := keep(x, issues(x), project, d.Fields)
	x.Effect("issue", project+" "+fmt.Sprint(d.Fields["summary"]), 0)
	return i, nil
}

const maxBulk = 50

// element is what went wrong with one issue of many.
type element struct {
	Status int     `json:"status"`
	Errors trouble `json:"elementErrors"`
	Number int     `json:"failedElementNumber"`
}

func createIssues(x *sim.Exchange) sim.Answer {
	var b struct {
		Updates []draft `json:"issueUpdates"`
	}
	if x.Decode(&b) != nil || len(b.Updates) < 1 || len(b.Updates) > maxBulk {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "send issueUpdates, from 1 to 50 of them"})
	}
	made, failed := []shown{}, []element{}
	for n, d := range b.Updates {
		i, faults := add(x, d)
		if len(faults) > 0 {
			failed = append(failed, element{http.StatusBadRequest, trouble{[]string{}, faults}, n})
			continue
		}
		made = append(made, i.brief(x))
	}
	status := http.StatusCreated
	if len(made) == 0 {
		status = http.StatusBadRequest
	}
	return sim.JSON(status, struct {
		Issues []shown   `json:"issues"`
		Errors []element `json:"errors"`
	}{made, failed})
}

func getIssue(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	if !ok {
		return missing(x)
	}
	return sim.JSON(200, i.show(x, list(x.Query("fields"))))
}

// list reads names with commas between them.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

func editIssue(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	var d draft
	switch {
	case !ok:
		return missing(x)
	case x.Decode(&d) != nil || len(d.Fields) == 0:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"fields": {…}}`})
	case d.Fields["summary"] == "":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "summary", Detail: "You must specify a summary of the issue."})
	case d.Fields["status"] != nil:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "status", Detail: "Field 'status' cannot be set. It is changed by a transition."})
	}
	i.Fields = maps.Clone(i.Fields)
	maps.Copy(i.Fields, d.Fields)
	i.Updated = x.Now()
	issues(x).Put(i.ID, i)
	x.Effect("issue edit", "", 0)
	return sim.Answer{Status: http.StatusNoContent}
}

func deleteIssue(x *sim.Exchange) sim.Answer {
	i, ok := find(x, x.Value("id"))
	if !ok {
		return missing(x)
	}
	issues(x).Delete(i.ID)
	x.Effect("issue delete", i.ID, 0)
	return sim.Answer{Status: http.StatusNoContent}
}
