package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

const (
	maxPage  = 500
	maxAdded = 10_000 // bibs written by PUT
	maxText  = 500    // bytes of a title or author
)

// bib is a bibliographic record.
type bib struct {
	ID     int    `json:"id"`
	Title  string `json:"title"`
	Author string `json:"author"`
}

// bibs are generated from the seed until somebody writes one.
type bibs struct {
	world   World
	written map[int]bib
	highest int
}

func newBibs(w World) bibs {
	return bibs{world: w, written: map[int]bib{}, highest: w.Records}
}

var (
	subjects = []string{"A history", "The grammar", "An atlas", "Notes", "The practice", "A dictionary", "Letters", "The theory"}
	matters  = []string{"rivers", "clocks", "bridges", "weather", "printing", "gardens", "islands", "measurement"}
	authors  = []string{"Adeyemi, R.", "Brandt, K.", "Castro, M.", "Dufour, L.", "Eriksen, T.", "Fujita, S.", "Gruber, H.", "Haddad, N."}
)

func (b bibs) get(id int) (bib, bool) {
	if w, ok := b.written[id]; ok {
		return w, true
	}
	if id < 1 || id > b.world.Records {
		return bib{}, false
	}
	pick := func(of string, from []string) string {
		return from[int(b.world.draw(of, "", "bib", id)*float64(len(from)))]
	}
	return bib{id, pick("subject", subjects) + " of " + pick("matter", matters), pick("author", authors)}, true
}

func (a *API) listBibs(x *exchange) answer {
	offset, err1 := number(x.r, "offset", 0)
	limit, err2 := number(x.r, "limit", 50)
	if err1 != nil || err2 != nil || limit < 1 || limit > maxPage {
		return problem(http.StatusBadRequest, fmt.Sprintf("give offset from 0, and limit from 1 to %d", maxPage))
	}
	page := struct {
		Total   int   `json:"total"`
		Offset  int   `json:"offset"`
		Entries []bib `json:"entries"`
	}{a.bibs.world.Records + a.added(), offset, []bib{}}
	skipped := 0
	for id := 1; id <= a.bibs.highest && len(page.Entries) < limit; id++ {
		b, ok := a.bibs.get(id)
		if !ok {
			continue
		}
		if skipped++; skipped > offset {
			page.Entries = append(page.Entries, b)
		}
	}
	return object(200, page)
}

// added counts the bibs that were not there at first.
func (a *API) added() int {
	n := 0
	for id := range a.bibs.written {
		if id > a.bibs.world.Records {
			n++
		}
	}
	return n
}

func number(r *http.Request, name string, d int) (int, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return d, nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	return int(n), err
}

func (a *API) getBib(x *exchange) answer {
	id, err := strconv.Atoi(x.value)
	b, ok := a.bibs.get(id)
	if err != nil || !ok {
		return problem(http.StatusNotFound, "there is no such bib")
	}
	return object(200, b)
}

func (a *API) putBib(x *exchange) answer {
	id, err := strconv.Atoi(x.value)
	if err != nil || id < 1 || id > a.bibs.world.Records+maxAdded {
		return problem(http.StatusBadRequest, fmt.Sprintf("an id is a number from 1 to %d", a.bibs.world.Records+maxAdded))
	}
	var b bib
	if err := json.Unmarshal(x.body, &b); err != nil || b.Title == "" || len(b.Title)+len(b.Author) > 2*maxText {
		return problem(http.StatusBadRequest, `send {"title": "…", "author": "…"}`)
	}
	b.ID = id
	status := http.StatusOK
	if _, ok := a.bibs.get(id); !ok {
		status = http.StatusCreated
	}
	a.bibs.written[id] = b
	a.bibs.highest = max(a.bibs.highest, id)
	return object(status, b)
}
