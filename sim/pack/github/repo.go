package github

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// repo is a repository.
type repo struct {
	ID       int    `json:"id"`
	Node     string `json:"node_id"`
	Name     string `json:"name"`
	FullName string `json:"full_name"`
	Private  bool   `json:"private"`
	Fork     bool   `json:"fork"`
	Owner    person `json:"owner"`
	Issues   int    `json:"open_issues_count"`
}

// slowTime is how long forks and statistics take.
const slowTime = 2 * time.Second

// atFirst is how many issues octo/heed has when nobody opened one.
const atFirst = 65

// repos is the table by full name in lower case, with what is there at first.
func repos(x *sim.Exchange) *sim.Table[repo] {
	all := sim.Rows[repo](x, "repos")
	if all.Len() == 0 {
		r := addRepo(all, me.Login, "heed", false)
		for n := range atFirst {
			i := issue{Title: fmt.Sprintf("Gauge %d drips", n+1), Body: "", Labels: []label{}}
			addIssue(x, r, i, x.Now().Add(-time.Hour))
		}
	}
	return all
}

func addRepo(all *sim.Table[repo], owner, name string, fork bool) repo {
	id := all.Len() + 1
	r := repo{ID: id, Node: "R_" + strconv.Itoa(id), Name: name, FullName: owner + "/" + name, Fork: fork, Owner: me}
	r.Owner.Login = owner
	all.Put(repoKey(r.FullName), r)
	return r
}

// repoKey is how a full name is found: case means nothing in it.
func repoKey(fullName string) string { return strings.ToLower(fullName) }

// repoOf is the repository that the path names.
func repoOf(x *sim.Exchange) (repo, bool) {
	return repos(x).Get(repoKey(x.Value("owner") + "/" + x.Value("repo")))
}

// missing is 404, which may also mean that one may not know.
func missing(x *sim.Exchange) sim.Answer { return x.Refuse(sim.Refusal{Kind: sim.NotFound}) }

func getRepo(x *sim.Exchange) sim.Answer {
	r, ok := repoOf(x)
	if !ok {
		return missing(x)
	}
	for _, i := range issuesOf(x, r) {
		if i.State == open {
			r.Issues++
		}
	}
	return sim.JSON(200, r)
}

func listRepos(x *sim.Exchange) sim.Answer {
	var all []repo
	for _, r := range repos(x).All() {
		all = append(all, r)
	}
	return paged(x, all)
}

func createRepo(x *sim.Exchange) sim.Answer {
	var asked struct {
		Name    string `json:"name"`
		Private bool   `json:"private"`
	}
	all := repos(x)
	if x.Decode(&asked) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest})
	}
	if asked.Name == "" {
		return invalid("Repository", "name", "missing_field")
	}
	if _, ok := all.Get(repoKey(me.Login + "/" + asked.Name)); ok {
		return sim.JSON(422, trouble{Message: "Repository creation failed.", Errors: []fault{{"Repository", "name", "custom"}}, Docs: docs, Status: "422"})
	}
	r := addRepo(all, me.Login, asked.Name, false)
	x.Effect("repo", r.FullName, 0)
	return sim.JSON(http.StatusCreated, r)
}

// fork answers at once, and the fork is there some time later.
func fork(x *sim.Exchange) sim.Answer {
	r, ok := repoOf(x)
	if !ok {
		return missing(x)
	}
	all := repos(x)
	x.Effect("fork", r.FullName, 0)
	x.After(slowTime, func(time.Time) { addRepo(all, "me", r.Name, true) })
	promise := repo{ID: all.Len() + 1, Name: r.Name, FullName: "me/" + r.Name, Fork: true, Owner: person{"me", 2, "User"}}
	return sim.JSON(http.StatusAccepted, promise)
}

// contributors are computed when they are first asked for.
func contributors(x *sim.Exchange) sim.Answer {
	r, ok := repoOf(x)
	if !ok {
		return missing(x)
	}
	computed := sim.Rows[bool](x, "statistics")
	done, asked := computed.Get(r.FullName)
	if !asked {
		computed.Put(r.FullName, false)
		x.After(slowTime, func(time.Time) { computed.Put(r.FullName, true) })
	}
	if !done {
		return sim.JSON(http.StatusAccepted, struct{}{})
	}
	return sim.JSON(200, []struct {
		Author person `json:"author"`
		Total  int    `json:"total"`
	}{{me, 42}})
}

// Pages as Link tells them.
const (
	maxPage  = 100
	maxFound = 1000 // of a search
)

// number reads a parameter from 1 on; what is none is d, as GitHub has it.
func number(x *sim.Exchange, name string, d int) int {
	n, err := strconv.Atoi(x.Query(name))
	if err != nil || n < 1 {
		return d
	}
	return n
}

// paged answers with a page of all.
func paged[T any](x *sim.Exchange, all []T) sim.Answer {
	some, link := cut(x, all)
	an := sim.JSON(200, some)
	if link != "" {
		an.Set("Link", link)
	}
	return an
}

// cut takes the page that is asked for, and tells where there are others.
func cut[T any](x *sim.Exchange, all []T) (some []T, link string) {
	size := min(number(x, "per_page", 30), maxPage)
	page := number(x, "page", 1)
	last := max((len(all)+size-1)/size, 1)
	begin := min((page-1)*size, len(all))
	some = append([]T{}, all[begin:min(begin+size, len(all))]...)
	var links []string
	add := func(n int, rel string) {
		links = append(links, "<"+here(x, n)+`>; rel="`+rel+`"`)
	}
	if page > 1 {
		add(page-1, "prev")
	}
	if page < last {
		add(page+1, "next")
		add(last, "last")
	}
	if page > 1 {
		add(1, "first")
	}
	return some, strings.Join(links, ", ")
}

// here is the URL of x at another page.
func here(x *sim.Exchange, page int) string {
	q := x.Request.URL.Query()
	q.Set("page", strconv.Itoa(page))
	return x.URL(x.Path) + "?" + q.Encode()
}
