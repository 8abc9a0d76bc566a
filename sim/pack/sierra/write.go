package sierra

import (
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

// done is the answer of a write that worked.
func done() sim.Answer { return sim.Answer{Status: 204, Fields: [][2]string{{"Content-Type", ""}}} }

func createBib(x *sim.Exchange) sim.Answer {
	var sent struct{ Title, Author string }
	if x.Decode(&sent) != nil || sent.Title == "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Field: "title", Detail: "a bib has a title"})
	}
	all := bibs(x)
	id := all.ID(all.Len() + 1) // deleted ones keep their number
	all.Put(id, bib{record: record{ID: id, Updated: x.Now().UTC(), Created: x.Now().UTC()},
		Title: sent.Title, Author: sent.Author, Material: coded{"a", "Book"}})
	x.Effect("bib", "", 0)
	return sim.JSON(200, struct {
		Link string `json:"link"`
	}{x.URL(root + "/bibs/" + id)})
}

func updateBib(x *sim.Exchange) sim.Answer {
	all := bibs(x)
	b, ok := all.Get(x.Value("id"))
	if !ok || b.Deleted {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	sent := struct {
		Title      *string `json:"title"`
		Author     *string `json:"author"`
		Suppressed *bool   `json:"suppressed"`
	}{&b.Title, &b.Author, &b.Suppressed}
	if x.Decode(&sent) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "Invalid JSON"})
	}
	b.Updated = x.Now().UTC()
	all.Put(b.ID, b)
	x.Effect("bib update", b.ID, 0)
	return done()
}

// remove leaves the id and the day of a record.
func remove[T headed](open func(*sim.Exchange) stock.Stock[T], what string, head func(*T) *record) func(*sim.Exchange) sim.Answer {
	return func(x *sim.Exchange) sim.Answer {
		all := open(x)
		v, ok := all.Get(x.Value("id"))
		if !ok || v.head().Deleted {
			return x.Refuse(sim.Refusal{Kind: sim.NotFound})
		}
		r := head(&v)
		r.Deleted, r.Gone, r.Updated = true, x.Now().UTC().Format(day), x.Now().UTC()
		all.Put(r.ID, v)
		x.Effect(what+" delete", r.ID, 0)
		return done()
	}
}

func updateItem(x *sim.Exchange) sim.Answer {
	all := items(x)
	i, ok := all.Get(x.Value("id"))
	if !ok || i.Deleted {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	sent := struct {
		Status   *string `json:"status"`
		Location *string `json:"location"`
	}{&i.Status.Code, &i.Location.Code}
	if x.Decode(&sent) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "Invalid JSON"})
	}
	i.Updated = x.Now().UTC()
	all.Put(i.ID, i)
	x.Effect("item update", i.ID, 0)
	return done()
}

// unwritable can be read and not written, as some ids are.
const unwritable = "3000007"

// updatePatron adds phones to those that are there: a PUT sent twice shows.
func updatePatron(x *sim.Exchange) sim.Answer {
	all := patrons(x)
	p, ok := all.Get(x.Value("id"))
	if !ok || p.ID == unwritable {
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	}
	var sent struct {
		Emails []string `json:"emails"`
		Phones []phone  `json:"phones"`
		PIN    *string  `json:"pin"`
	}
	if x.Decode(&sent) != nil {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "Invalid JSON"})
	}
	if sent.PIN != nil {
		if why := weak(*sent.PIN); why != 0 {
			return failed(x, fault{Code: 136, Specific: why, Status: 400, Name: "PIN is not valid"})
		}
		p.PIN = *sent.PIN
	}
	if sent.Emails != nil {
		p.Emails = sent.Emails
	}
	p.Phones = append(p.Phones[:len(p.Phones):len(p.Phones)], sent.Phones...)
	p.Updated = x.Now().UTC()
	all.Put(p.ID, p)
	x.Effect("patron update", p.ID, 0)
	return done()
}

// weak is the specificCode of a PIN that is not taken: 3 too long, 6 trivial.
func weak(pin string) int {
	switch {
	case len(pin) > 30:
		return 3
	case pin == "" || strings.Count(pin, pin[:1]) == len(pin) || strings.Contains("0123456789", pin):
		return 6
	}
	return 0
}

// findPatron looks for a barcode (varFieldTag=b) or a name (n).
func findPatron(x *sim.Exchange) sim.Answer {
	tag, text := x.Query("varFieldTag"), x.Query("varFieldContent")
	if tag == "" || text == "" {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "give varFieldTag and varFieldContent"})
	}
	var found []patron
	for _, p := range patrons(x).All() {
		if tag == "b" && p.Barcodes[0] == text || tag == "n" && strings.EqualFold(p.Names[0], text) {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return x.Refuse(sim.Refusal{Kind: sim.NotFound})
	case 1:
		return sim.JSON(200, cut(found[0], list(x.Query("fields"))))
	}
	return x.Refuse(sim.Refusal{Kind: sim.Conflict, Detail: strconv.Itoa(len(found)) + " records match"})
}

func validatePatron(x *sim.Exchange) sim.Answer {
	var sent struct{ Barcode, PIN string }
	if x.Decode(&sent) == nil {
		for _, p := range patrons(x).All() {
			if p.Barcodes[0] == sent.Barcode && p.PIN == sent.PIN {
				return done()
			}
		}
	}
	return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "Invalid parameter : Invalid barcode or PIN"})
}
