package folio

import (
	"slices"
	"strconv"

	"github.com/heedproject/heed/sim"
)

const (
	usualPage = 10
	exactTo   = 1000 // more are estimated
)

// search gives a page of what a query finds.
func (c *collection) search(x *sim.Exchange) sim.Answer {
	limit, offset := usualPage, 0
	for name, p := range map[string]*int{"limit": &limit, "offset": &offset} {
		if given := x.Query(name); given != "" {
			n, err := strconv.ParseUint(given, 10, 31)
			if err != nil {
				return text(400, "'limit' or 'offset' parameter is incorrect: numbers from 0 to 2147483647 are expected")
			}
			*p = int(n)
		}
	}
	q, err := parseCQL(x.Query("query"))
	if err != nil {
		return text(400, "CQLParseException: "+err.Error())
	}
	page, total := c.find(x, q, limit, offset)
	body := map[string]any{c.list: page}
	switch x.Query("totalRecords") {
	case "none":
	case "exact":
		body["totalRecords"] = total
	case "", "auto", "estimated":
		body["totalRecords"] = estimate(total, limit, offset, len(page))
	default:
		return text(400, "'totalRecords' parameter is incorrect: auto, exact, none or estimated is expected")
	}
	return sim.JSON(200, body)
}

// find returns the page and how many there are.
func (c *collection) find(x *sim.Exchange, q query, limit, offset int) (page []doc, total int) {
	all := c.open(x)
	page = []doc{}
	if q.where == nil && q.sort == "" { // nothing but the page need be looked at
		n := 0
		for id := range all.IDs() {
			if n++; n > offset && len(page) < limit {
				d, _ := all.Get(id)
				page = append(page, d)
			}
		}
		return page, n
	}
	for _, d := range all.All() {
		if q.where == nil || q.where(d) {
			page = append(page, d)
		}
	}
	total = len(page)
	q.order(page)
	page = page[min(offset, total):]
	return slices.Clip(page[:min(limit, len(page))]), total
}

// estimate is what totalRecords says: exact for a few and for limit=0, else a
// guess that the page at hand may disprove (raml-module-builder README).
func estimate(total, limit, offset, got int) int {
	if limit == 0 || total < exactTo {
		return total
	}
	guess := total + total/8
	switch {
	case got == limit:
		return max(guess, offset+got)
	case got > 0:
		return offset + got
	}
	return min(guess, offset)
}
