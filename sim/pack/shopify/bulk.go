package shopify

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/graph"
)

// runBulk takes a query with one connection and begins to run it, if no other
// one is at work.
func (s *shop) runBulk(f graph.Field) any {
	refused := func(why, code string) graph.Object {
		e := userErrors("query", why)
		e[0]["code"] = code
		return graph.Object{"bulkOperation": nil, "userErrors": e}
	}
	text := f.Text("query")
	d, err := graph.Parse(text, "", nil)
	last := newestBulk(s.x)
	switch {
	case last.atWork():
		return refused("A bulk query operation for this app and shop is already in progress: "+last.id+".", "OPERATION_IN_PROGRESS")
	case err != nil:
		return refused("Invalid bulk query: "+err.Error(), "INVALID")
	case len(d.Fields) != 1 || d.Kind != "query" || len(inside(d.Fields[0].Fields)) == 0:
		return refused("Bulk queries must contain at least one connection.", "INVALID")
	}
	now := s.x.Now()
	b := &bulk{id: bulkMark + s.x.ID(""), status: "CREATED", query: text, created: now.UTC().Format(time.RFC3339)}
	sim.Rows[*bulk](s.x, "bulk").Put(b.id, b)
	s.x.Effect("bulk operation", "", 0)
	s.x.After(bulkBegin, func(time.Time) { b.move("CREATED", "RUNNING") })
	s.x.After(bulkBegin+bulkTime, func(now time.Time) {
		if b.move("RUNNING", "COMPLETED") {
			b.ended = now.UTC().Format(time.RFC3339)
			b.fill(s, d.Fields[0])
			emit(s.x, "bulk_operations/finish", map[string]string{"admin_graphql_api_id": b.id, "status": strings.ToLower(b.status), "completed_at": b.ended})
		}
	})
	return graph.Object{"bulkOperation": b.object(s.x), "userErrors": userErrors("", "")}
}

// move changes the state if it is from.
func (b *bulk) move(from, to string) bool {
	if b.status != from {
		return false
	}
	b.status = to
	return true
}

// fill writes the objects of the connection that f asks for, each as a line.
func (b *bulk) fill(s *shop, f graph.Field) {
	fields := []graph.Field{{Name: f.Name, Alias: "all", Fields: []graph.Field{{Name: "nodes", Alias: "nodes", Fields: inside(f.Fields)}}}}
	data, err := graph.Pick("QueryRoot", s.queries(), fields)
	all, ok := data["all"].(map[string]any)
	if err != nil || !ok {
		b.status = "FAILED"
		return
	}
	nodes, _ := all["nodes"].([]any)
	for _, n := range nodes {
		if text, err := json.Marshal(n); err == nil {
			b.lines = append(append(b.lines, text...), '\n')
			b.objects++
		}
	}
}

func (s *shop) cancelBulk(f graph.Field) any {
	b, ok := sim.Rows[*bulk](s.x, "bulk").Get(f.Text("id"))
	if !ok || !b.atWork() {
		return graph.Object{"bulkOperation": b.object(s.x), "userErrors": userErrors("id", "A bulk operation cannot be canceled when it is completed")}
	}
	b.status = "CANCELING"
	s.x.After(bulkBegin, func(time.Time) { b.move("CANCELING", "CANCELED") })
	s.x.Effect("bulk cancel", b.id, 0)
	return graph.Object{"bulkOperation": b.object(s.x), "userErrors": userErrors("", "")}
}

// download is the file with the result. Who has its URL may read it.
func download(x *sim.Exchange) sim.Answer {
	b, ok := sim.Rows[*bulk](x, "bulk").Get(bulkMark + x.Value("id"))
	if !ok || b.status != "COMPLETED" {
		return missing(x)
	}
	return sim.Answer{Status: 200, Body: b.lines}.With("Content-Type", "application/jsonl")
}
