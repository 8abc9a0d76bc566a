package github

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

type issue struct {
	ID       int     `json:"id"`
	Node     string  `json:"node_id"`
	Number   int     `json:"number"`
	Title    string  `json:"title"`
	Body     string  `json:"body"`
	State    string  `json:"state"`
	Labels   []label `json:"labels"`
	User     person  `json:"user"`
	Comments int     `json:"comments"`
	Created  string  `json:"created_at"`
	Updated  string  `json:"updated_at"`
	Closed   *string `json:"closed_at"`
	URL      string  `json:"html_url"`

	repo string
}

type label struct {
	Name string `json:"name"`
}

// UnmarshalJSON takes a name alone too, as the API does.
func (l *label) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, &l.Name) == nil {
		return nil
	}
	var o struct{ Name string }
	err := json.Unmarshal(b, &o)
	l.Name = o.Name
	return err
}

const (
	open   = "open"
	closed = "closed"
)

func issues(x *sim.Exchange) *sim.Table[issue] { return sim.Rows[issue](x, "issues") }

func place(repo string, number int) string { return strings.ToLower(repo) + "#" + strconv.Itoa(number) }

// addIssue numbers and keeps an issue.
func addIssue(x *sim.Exchange, r repo, i issue, at time.Time) issue {
	counts := sim.Rows[int](x, "issues of a repo")
	n, _ := counts.Get(r.FullName)
	counts.Put(r.FullName, n+1)
	i.ID, i.Number, i.State, i.User, i.repo = issues(x).Len()+1, n+1, open, me, r.FullName
	i.Node = "I_" + strconv.Itoa(i.ID)
	i.URL = "https://github.com/" + r.FullName + "/issues/" + strconv.Itoa(i.Number)
	i.Created = at.UTC().Format(time.RFC3339)
	i.Updated = i.Created
	issues(x).Put(place(r.FullName, i.Number), i)
	return i
}

// issuesOf are those of a repository, the newest first.
func issuesOf(x *sim.Exchange, r repo) []issue {
	var all []issue
	for _, i := range issues(x).Newest() {
		if strings.EqualFold(i.repo, r.FullName) {
			all = append(all, i)
		}
	}
	return all
}

func listIssues(x *sim.Exchange) sim.Answer {
	r, ok := repoOf(x)
	if !ok {
		return missing(x)
	}
	state := x.Query("state")
	if state == "" {
		state = open
	}
	all := slices.DeleteFunc(issuesOf(x, r), func(i issue) bool { return state != "all" && i.State != state })
	if x.Query("direction") == "asc" {
		slices.Reverse(all)
	}
	return paged(x, all)
}

// draft is the body of a create or an update.
type draft struct {
	Title  *string `json:"title"`
	Body   *string `json:"body"`
	State  *string `json:"state"`
	Labels []label `json:"labels"`
}

// fill sets what d names, and tells which field is not valid.
func (i *issue) fill(d draft, now time.Time) (field string) {
	if d.Title != nil {
		i.Title = *d.Title
	}
	if d.Body != nil {
		i.Body = *d.Body
	}
	if d.Labels != nil {
		i.Labels = d.Labels
	}
	at := now.UTC().Format(time.RFC3339)
	if d.State != nil && *d.State != i.State {
		if *d.State != open && *d.State != closed {
			return "state"
		}
		if i.State, i.Closed = *d.State, nil; i.State == closed {
			i.Closed = &at
		}
	}
	i.Updated = at
	if strings.TrimSpace(i.Title) == "" {
		return "title"
	}
	return ""
}

func createIssue(x *sim.Exchange) sim.Answer {
	r, ok := repoOf(x)
	var d draft
	switch {
	case !ok:
		return missing(x)
	case x.Decode(&d) != nil:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest})
	case d.Title == nil:
		return invalid("Issue", "title", "missing_field")
	}
	i := issue{Labels: []label{}}
	d.State = nil
	if field := i.fill(d, x.Now()); field != "" {
		return invalid("Issue", field, "missing_field")
	}
	i = openIssue(x, r, i)
	return sim.JSON(http.StatusCreated, i).With("Location", x.Path+"/"+strconv.Itoa(i.Number))
}

// openIssue keeps a new issue. The ledger knows it by repository and title:
// there is no key that would keep a caller from opening it twice.
func openIssue(x *sim.Exchange, r repo, i issue) issue {
	i = addIssue(x, r, i, x.Now())
	x.Effect("issue", r.FullName+" "+i.Title, 0)
	emit(x, "opened", i, nil)
	return i
}

// issueOf is the issue that the path names.
func issueOf(x *sim.Exchange) (issue, bool) {
	r, ok := repoOf(x)
	n, err := strconv.Atoi(x.Value("number"))
	if !ok || err != nil {
		return issue{}, false
	}
	return issues(x).Get(place(r.FullName, n))
}

func getIssue(x *sim.Exchange) sim.Answer {
	i, ok := issueOf(x)
	if !ok {
		return missing(x)
	}
	return sim.JSON(200, i)
}

func updateIssue(x *sim.Exchange) sim.Answer {
	i, ok := issueOf(x)
	var d draft
	switch {
	case !ok:
		return missing(x)
	case x.Decode(&d) != nil:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest})
	}
	before := i.State
	if field := i.fill(d, x.Now()); field != "" {
		return invalid("Issue", field, "invalid")
	}
	issues(x).Put(place(i.repo, i.Number), i)
	x.Effect("issue update", "", 0)
	action := "edited"
	if i.State != before {
		action = map[string]string{open: "reopened", closed: "closed"}[i.State]
	}
	emit(x, action, i, nil)
	return sim.JSON(200, i)
}

type comment struct {
	ID      int    `json:"id"`
	Body    string `json:"body"`
	User    person `json:"user"`
	Created string `json:"created_at"`
}

func createComment(x *sim.Exchange) sim.Answer {
	i, ok := issueOf(x)
	var asked struct {
		Body string `json:"body"`
	}
	switch {
	case !ok:
		return missing(x)
	case x.Decode(&asked) != nil:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest})
	case strings.TrimSpace(asked.Body) == "":
		return invalid("IssueComment", "body", "missing_field")
	}
	all := sim.Rows[[]comment](x, "comments")
	have, _ := all.Get(place(i.repo, i.Number))
	i.Comments++
	issues(x).Put(place(i.repo, i.Number), i)
	c := comment{i.ID*1000 + i.Comments, asked.Body, me, x.Now().UTC().Format(time.RFC3339)}
	all.Put(place(i.repo, i.Number), append(have[:len(have):len(have)], c))
	x.Effect("comment", place(i.repo, i.Number)+" "+asked.Body, 0)
	emit(x, "created", i, &c)
	return sim.JSON(http.StatusCreated, c)
}

func listComments(x *sim.Exchange) sim.Answer {
	i, ok := issueOf(x)
	if !ok {
		return missing(x)
	}
	have, _ := sim.Rows[[]comment](x, "comments").Get(place(i.repo, i.Number))
	return paged(x, have)
}
