package github

import (
	"errors"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/graph"
)

// ailing is one of the errors of a GraphQL answer.
type ailing struct {
	Type       string        `json:"type,omitempty"`
	Path       []string      `json:"path,omitempty"`
	Locations  []graph.Place `json:"locations,omitempty"`
	Extensions any           `json:"extensions,omitempty"`
	Message    string        `json:"message"`
}

// asked is the body of a request.
type asked struct {
	Query     string         `json:"query"`
	Name      string         `json:"operationName"`
	Variables map[string]any `json:"variables"`
}

func documentOf(x *sim.Exchange) (graph.Document, error) {
	var a asked
	if x.Decode(&a) != nil || a.Query == "" {
		return graph.Document{}, errors.New("a query attribute must be specified and must be a string")
	}
	return graph.Parse(a.Query, a.Name, a.Variables)
}

const maxNodes = 500_000

// nodes counts what fields may give at most, as the limits of GraphQL do.
func nodes(fields []graph.Field, times int) int {
	n := 0
	for _, f := range fields {
		here := times
		for _, arg := range []string{"first", "last"} {
			if k := f.Int(arg, 0); k > 0 {
				here = min(times*min(k, maxNodes), 100*maxNodes)
				n += here
			}
		}
		n = min(n+nodes(f.Fields, here), 100*maxNodes)
	}
	return n
}

// queryCost is a point for each hundred of possible requests for nodes, and at
// least one (docs.github.com, rate limits for the GraphQL API).
func queryCost(x *sim.Exchange) float64 {
	d, err := documentOf(x)
	n := nodes(d.Fields, 1)
	if err != nil || n > maxNodes { // it is refused, and runs nothing
		return 1
	}
	return float64(max(n/100, 1))
}

func query(x *sim.Exchange) sim.Answer {
	d, err := documentOf(x)
	if err != nil {
		return gql(nil, ailing{Message: err.Error()})
	}
	if n := nodes(d.Fields, 1); n > maxNodes {
		return gql(nil, ailing{Type: "MAX_NODE_LIMIT_EXCEEDED", Message: "This query requests too many possible nodes, which exceeds the maximum limit of 500,000."})
	}
	var faults []ailing
	root, kind := queries(x, &faults), "Query"
	if d.Kind == "mutation" {
		root, kind = mutations(x, &faults), "Mutation"
	}
	data, err := graph.Pick(kind, root, d.Fields)
	if m, ok := errors.AsType[*graph.Missing](err); ok {
		return gql(nil, ailing{Path: append([]string{d.Kind}, m.Path...), Message: m.Error(), Locations: []graph.Place{m.At},
			Extensions: map[string]string{"code": "undefinedField", "typeName": m.Type, "fieldName": m.Field}})
	}
	return gql(data, faults...)
}

// gql is an answer; there is no data where the document itself is at fault.
func gql(data map[string]any, faults ...ailing) sim.Answer {
	out := map[string]any{}
	if data != nil {
		out["data"] = data
	}
	if len(faults) > 0 {
		out["errors"] = faults
	}
	return sim.JSON(200, out)
}

// queries are what can be read.
func queries(x *sim.Exchange, faults *[]ailing) graph.Object {
	return graph.Object{
		"viewer": graph.Object{"login": me.Login, "id": "U_1"},
		"rateLimit": graph.Resolver(func(graph.Field) any {
			t, ok := x.Left("graphql")
			if !ok {
				return nil
			}
			s := inRequests(x, t)
			return graph.Object{"limit": s.Limit, "cost": int(queryCost(x)), "remaining": s.Remaining,
				"used": s.Used, "resetAt": time.Unix(s.Reset, 0).UTC().Format(time.RFC3339)}
		}),
		"repository": graph.Resolver(func(f graph.Field) any {
			name := f.Text("owner") + "/" + f.Text("name")
			r, ok := repos(x).Get(repoKey(name))
			if !ok {
				*faults = append(*faults, ailing{Type: "NOT_FOUND", Path: []string{f.Alias},
					Message: "Could not resolve to a Repository with the name '" + name + "'."})
				return nil
			}
			return repoObject(x, r)
		}),
	}
}

func repoObject(x *sim.Exchange, r repo) graph.Object {
	return graph.Object{
		"id": r.Node, "name": r.Name, "nameWithOwner": r.FullName, "isFork": r.Fork,
		"issues": graph.Resolver(func(f graph.Field) any {
			var all []graph.Object
			var cursors []string
			for _, i := range issuesOf(x, r) {
				all = append(all, issueObject(i))
				cursors = append(cursors, i.Node)
			}
			return graph.Connection(f, all, func(n int) string { return cursors[n] })
		}),
		"issue": graph.Resolver(func(f graph.Field) any {
			i, ok := issues(x).Get(place(r.FullName, f.Int("number", 0)))
			if !ok {
				return nil
			}
			return issueObject(i)
		}),
	}
}

func issueObject(i issue) graph.Object {
	return graph.Object{"id": i.Node, "number": i.Number, "title": i.Title, "body": i.Body, "url": i.URL,
		"state": strings.ToUpper(i.State), "createdAt": i.Created, "updatedAt": i.Updated}
}

// mutations are what can be done.
func mutations(x *sim.Exchange, faults *[]ailing) graph.Object {
	return graph.Object{
		"createIssue": graph.Resolver(func(f graph.Field) any {
			in := f.Object("input")
			title, _ := in["title"].(string)
			body, _ := in["body"].(string)
			for _, r := range repos(x).All() {
				if r.Node == in["repositoryId"] && strings.TrimSpace(title) != "" {
					i := openIssue(x, r, issue{Title: title, Body: body, Labels: []label{}})
					return graph.Object{"issue": issueObject(i), "clientMutationId": in["clientMutationId"]}
				}
			}
			*faults = append(*faults, ailing{Type: "UNPROCESSABLE", Path: []string{f.Alias}, Message: "input needs the id of a repository, and a title"})
			return nil
		}),
	}
}
