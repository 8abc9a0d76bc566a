package hubspot

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// paging is where a list goes on; there is none at its end.
type paging struct {
	Next struct {
		After string `json:"after"`
		Link  string `json:"link,omitempty"`
	} `json:"next"`
}

type page struct {
	Results []shown `json:"results"`
	Paging  *paging `json:"paging,omitempty"`
}

func listContacts(x *sim.Exchange) sim.Answer {
	limit, bad := limitOf(x.Query("limit"), 100)
	if bad != nil {
		return x.Refuse(*bad)
	}
	after, err := strconv.Atoi(x.Query("after"))
	if err != nil && x.Query("after") != "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "after is not one of ours"})
	}
	p := page{Results: []shown{}}
	for _, c := range bookOf(x).contacts.All() {
		switch {
		case c.id <= after:
		case len(p.Results) == limit:
			p.Paging = &paging{}
			p.Paging.Next.After = p.Results[limit-1].ID
			p.Paging.Next.Link = x.URL(base) + "?limit=" + strconv.Itoa(limit) + "&after=" + p.Paging.Next.After
			return sim.JSON(200, p)
		default:
			p.Results = append(p.Results, c.show(names(x.Query("properties"))))
		}
	}
	return sim.JSON(200, p)
}

func limitOf(text string, most int) (int, *sim.Refusal) {
	if text == "" {
		return 10, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, &sim.Refusal{Kind: sim.BadRequest, Detail: "limit is from 1 to " + strconv.Itoa(most)}
	}
	return n, nil
}

// Limits of a search: it goes no further than maxFound, and knows a contact
// when indexTime has passed since it was written.
const (
	maxFound  = 10_000
	indexTime = 2 * time.Second
)

// filter is one condition.
type filter struct {
	Property string   `json:"propertyName"`
	Operator string   `json:"operator"`
	Value    string   `json:"value"`
	Values   []string `json:"values"`
}

// query finds the contacts for which all filters of some group hold.
type query struct {
	Groups []struct {
		Filters []filter `json:"filters"`
	} `json:"filterGroups"`
	Text       string   `json:"query"`
	Properties []string `json:"properties"`
	Limit      int      `json:"limit"`
	After      string   `json:"after"`
}

func search(x *sim.Exchange) sim.Answer {
	var q query
	if x.Decode(&q) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"filterGroups": [{"filters": [{"propertyName": "email", "operator": "EQ", "value": "…"}]}]}`})
	}
	if q.Limit == 0 {
		q.Limit = 10
	}
	begin, _ := strconv.Atoi(q.After) // "" is the begin
	operator := q.unknown()
	switch {
	case q.Limit < 1 || q.Limit > 200:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "limit is from 1 to 200"})
	case begin < 0 || begin+q.Limit > maxFound:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "a search ends at 10000 results"})
	case operator != "":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "operator " + operator + " is not known here"})
	}
	var all []shown
	for _, c := range bookOf(x).contacts.All() {
		if x.Now().Sub(c.updated) >= indexTime && q.holds(c) {
			all = append(all, c.show(q.Properties))
		}
	}
	end := min(begin+q.Limit, len(all))
	p := struct {
		Total int `json:"total"`
		page
	}{len(all), page{Results: append([]shown{}, all[min(begin, end):end]...)}}
	if end < len(all) {
		p.Paging = &paging{}
		p.Paging.Next.After = strconv.Itoa(end)
	}
	return sim.JSON(200, p)
}

// operators are those that a filter may have; a test of the value that the
// contact has, "" if none.
var operators = map[string]func(f filter, have string) bool{
	"EQ":               func(f filter, have string) bool { return strings.EqualFold(have, f.Value) },
	"NEQ":              func(f filter, have string) bool { return !strings.EqualFold(have, f.Value) },
	"GT":               func(f filter, have string) bool { return have > f.Value },
	"GTE":              func(f filter, have string) bool { return have >= f.Value },
	"LT":               func(f filter, have string) bool { return have < f.Value },
	"LTE":              func(f filter, have string) bool { return have <= f.Value },
	"IN":               func(f filter, have string) bool { return slices.Contains(f.Values, have) },
	"HAS_PROPERTY":     func(_ filter, have string) bool { return have != "" },
	"NOT_HAS_PROPERTY": func(_ filter, have string) bool { return have == "" },
	"CONTAINS_TOKEN": func(f filter, have string) bool {
		return strings.Contains(strings.ToLower(have), strings.ToLower(strings.Trim(f.Value, "*")))
	},
}

// unknown is the first operator that is not known, or "".
func (q query) unknown() string {
	for _, g := range q.Groups {
		for _, f := range g.Filters {
			if operators[f.Operator] == nil {
				return strconv.Quote(f.Operator)
			}
		}
	}
	return ""
}

func (q query) holds(c contact) bool {
	all := c.show([]string{"email", "firstname", "lastname", "createdate", "lastmodifieddate", "hs_object_id"}).Properties
	maps.Copy(all, c.properties)
	if q.Text != "" && !strings.Contains(strings.ToLower(all["email"]+" "+all["firstname"]+" "+all["lastname"]), strings.ToLower(q.Text)) {
		return false
	}
	if len(q.Groups) == 0 {
		return true
	}
	for _, g := range q.Groups {
		if !slices.ContainsFunc(g.Filters, func(f filter) bool { return !operators[f.Operator](f, all[f.Property]) }) {
			return true
		}
	}
	return false
}

const maxBatch = 100

// ordered are the inputs of a batch.
type ordered struct {
	Inputs     []input  `json:"inputs"`
	IDProperty string   `json:"idProperty"`
	Properties []string `json:"properties"`
}

func inputs(x *sim.Exchange) (o ordered, bad *sim.Refusal) {
	if x.Decode(&o) != nil || len(o.Inputs) < 1 || len(o.Inputs) > maxBatch {
		return o, &sim.Refusal{Kind: sim.BadRequest, Detail: "send inputs, from 1 to 100 of them"}
	}
	return o, nil
}

// done is the answer to a batch.
type done struct {
	Status    string    `json:"status"`
	Results   []shown   `json:"results"`
	NumErrors int       `json:"numErrors,omitempty"`
	Errors    []trouble `json:"errors,omitempty"`
	Started   string    `json:"startedAt"`
	Completed string    `json:"completedAt"`
}

// batch does the same with each input. Where a part fails the status is 207.
func batch(do func(*sim.Exchange, input) (contact, int, *sim.Refusal)) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		o, bad := inputs(x)
		if bad != nil {
			return x.Refuse(*bad)
		}
		at := x.Now().UTC().Format(timeForm)
		d := done{Status: "COMPLETE", Results: []shown{}, Started: at, Completed: at}
		status := http.StatusOK
		for _, in := range o.Inputs {
			if in.IDProperty == "" {
				in.IDProperty = o.IDProperty
			}
			c, s, bad := do(x, in)
			if bad != nil {
				d.Errors = append(d.Errors, trouble{Status: "error", Category: categories[bad.Kind], Message: bad.Detail})
				continue
			}
			status = max(status, s)
			d.Results = append(d.Results, c.show(o.Properties))
		}
		if d.NumErrors = len(d.Errors); d.NumErrors > 0 {
			status = http.StatusMultiStatus
		}
		return sim.JSON(status, d)
	}
}

func archiveMany(x *sim.Exchange) sim.Answer {
	o, bad := inputs(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	b := bookOf(x)
	for _, in := range o.Inputs {
		if c, ok := b.find(in.ID, ""); ok {
			b.delete(c)
			x.Effect("contact archive", in.ID, 0)
		}
	}
	return sim.Answer{Status: http.StatusNoContent}
}
