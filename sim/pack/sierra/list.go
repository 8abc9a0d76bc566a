package sierra

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

const (
	usualPage = 50
	maxPage   = 2000 // observed, not documented
)

// headed is a record of some kind.
type headed interface{ head() record }

// wish is what the query of a list asks for.
type wish struct {
	limit, offset    int
	ids              []string // nil: all
	from, to         string   // of a range of ids; "": open
	bibs             []string
	updated, created span
	gone             span
	deleted          string // true, false or ""
	fields           []string
}

// page is a list as Sierra gives it. Total counts what is on the page.
type page struct {
	Total   int   `json:"total"`
	Start   int   `json:"start"`
	Entries []any `json:"entries"`
}

func listOf[T headed](open func(*sim.Exchange) stock.Stock[T], whole func(T) any) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		w, bad := wishOf(x)
		if bad != nil {
			return x.Refuse(*bad)
		}
		if w.fields != nil && w.deleted == "true" {
			return failed(x, fault{Code: 111, Status: 500, Name: "Data service"})
		}
		var found []any
		skip := w.offset
		all := open(x)
		for id := range w.among(all.IDs()) {
			v, ok := all.Get(id)
			if !ok || !w.takes(v) {
				continue
			}
			if skip--; skip >= 0 {
				continue
			}
			if found = append(found, cut(whole(v), w.fields)); len(found) == w.limit {
				break
			}
		}
		if len(found) > 0 {
			return sim.JSON(200, page{len(found), w.offset, found})
		}
		if w.deleted == "true" && !w.gone.none() {
			return sim.Text(200, "application/json;charset=UTF-8", `{"start":`+strconv.Itoa(w.offset)+`,"entries":[]}`)
		}
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
}

func oneOf[T headed](open func(*sim.Exchange) stock.Stock[T], whole func(T) any) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		v, ok := open(x).Get(x.Value("id"))
		if !ok {
			return x.Refuse(sim.Refusal{Kind: sim.NotFound})
		}
		return sim.JSON(200, cut(whole(v), list(x.Query("fields"))))
	}
}

func wishOf(x *sim.Exchange) (w wish, bad *sim.Refusal) {
	w.limit = usualPage
	for name, p := range map[string]*int{"limit": &w.limit, "offset": &w.offset} {
		text := x.Query(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || name == "limit" && (n < 1 || n > maxPage) {
			return w, &sim.Refusal{Kind: sim.BadRequest, Detail: "limit and offset are numbers, and limit is from 1 to " + strconv.Itoa(maxPage)}
		}
		*p = n
	}
	id := x.Query("id")
	if inner, ok := strings.CutPrefix(id, "["); ok {
		w.from, w.to, _ = strings.Cut(strings.TrimSuffix(inner, "]"), ",")
	} else {
		w.ids = list(id)
	}
	if len(w.ids) > maxPage {
		return w, &sim.Refusal{Kind: sim.BadRequest, Field: "id", Detail: "too many ids"}
	}
	w.bibs, w.fields, w.deleted = list(x.Query("bibIds")), list(x.Query("fields")), x.Query("deleted")
	for name, p := range map[string]*span{"updatedDate": &w.updated, "createdDate": &w.created, "deletedDate": &w.gone} {
		s, ok := spanOf(x.Query(name))
		if !ok {
			return w, &sim.Refusal{Kind: sim.BadRequest, Detail: "a date is a day or an instant, or two of them as [a,b]"}
		}
		*p = s
	}
	return w, nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// among yields the ids to look at, ascending, as all does already. Of a list
// of ids only as many as the page has are looked at: the rest is left out
// without a word.
func (w *wish) among(all iter.Seq[string]) iter.Seq[string] {
	if w.ids != nil {
		ids := slices.Clone(w.ids[:min(len(w.ids), w.limit)])
		slices.SortFunc(ids, order)
		all = slices.Values(ids)
	}
	return func(yield func(string) bool) {
		for id := range all {
			inside := (w.from == "" || order(id, w.from) >= 0) && (w.to == "" || order(id, w.to) <= 0)
			if inside && !yield(id) {
				return
			}
		}
	}
}

// order compares ids as numbers.
func order(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func (w *wish) takes(v headed) bool {
	r := v.head()
	if w.deleted != "" && w.deleted != strconv.FormatBool(r.Deleted) {
		return false
	}
	if !w.gone.none() {
		at, err := time.Parse(day, r.Gone)
		if err != nil || !w.gone.takes(at) {
			return false
		}
	}
	if i, ok := v.(item); ok && w.bibs != nil {
		if !slices.ContainsFunc(i.Bibs, func(id string) bool { return slices.Contains(w.bibs, id) }) {
			return false
		}
	}
	return w.updated.takes(r.Updated) && w.created.takes(r.Created)
}

// span is a range of instants; a zero end is open.
type span struct{ from, to time.Time }

func (s span) none() bool { return s == span{} }

func (s span) takes(t time.Time) bool {
	return (s.from.IsZero() || !t.Before(s.from)) && (s.to.IsZero() || !t.After(s.to))
}

// spanOf reads a day, an instant, or [a,b] where either may be missing.
func spanOf(text string) (s span, ok bool) {
	if text == "" {
		return s, true
	}
	inner, isRange := strings.CutPrefix(text, "[")
	a, b := text, text
	if isRange {
		if a, b, isRange = strings.Cut(strings.TrimSuffix(inner, "]"), ","); !isRange {
			return s, false
		}
	}
	var okA, okB bool
	s.from, okA = instant(a, 0)
	s.to, okB = instant(b, 24*time.Hour-1)
	return s, okA && okB
}

// instant reads a day, which lasts until its end, or an instant.
func instant(text string, end time.Duration) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	if t, err := time.Parse(day, text); err == nil {
		return t.Add(end), true
	}
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// cut leaves only the fields that were asked for, and the id.
func cut(v any, fields []string) any {
	if fields == nil {
		return v
	}
	doc, err := json.Marshal(v)
	var all map[string]json.RawMessage
	if err != nil || json.Unmarshal(doc, &all) != nil {
		return v
	}
	for name := range all {
		if name != "id" && !slices.Contains(fields, name) {
			delete(all, name)
		}
	}
	return all
}
