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

var (
	subjects = []string{"A history", "The grammar", "An atlas", "Notes", "The practice", "A dictionary", "Letters", "The theory"}
	matters  = []string{"rivers", "clocks", "bridges", "weather", "printing", "gardens", "islands", "measurement"}
	authors  = []string{"Adeyemi, R.", "Brandt, K.", "Castro, M.", "Dufour, L.", "Eriksen, T.", "Fujita, S.", "Gruber, H.", "Haddad, N."}
)

// bibs are generated from the seed until somebody writes one.
type bibs struct {
	seed    uint64
	records int
	written *Table[bib]
}

func bibsOf(x *Exchange) bibs { return bibs{x.Seed(), x.World().Records, Rows[bib](x, "bibs")} }

func (b bibs) get(id int) (bib, bool) {
	if b.written.Len() > 0 {
		if w, ok := b.written.Get(strconv.Itoa(id)); ok {
			return w, true
		}
	}
	if id < 1 || id > b.records {
		return bib{}, false
	}
	pick := func(of string, from []string) string {
		return from[int((sumBegin^sum(b.seed)).text(of).number(id).part()*float64(len(from)))]
	}
	return bib{id, pick("subject", subjects) + " of " + pick("matter", matters), pick("author", authors)}, true
}

func listBibs(x *Exchange) Answer {
	offset, err1 := number(x, "offset", 0)
	limit, err2 := number(x, "limit", 50)
	if err1 != nil || err2 != nil || limit < 1 || limit > maxPage {
		return problem(http.StatusBadRequest, fmt.Sprintf("give offset from 0, and limit from 1 to %d", maxPage))
	}
	all := bibsOf(x)
	added, highest := 0, all.records
	for _, b := range all.written.All() {
		if b.ID > all.records {
			added++
			highest = max(highest, b.ID)
		}
	}
	page := struct {
		Total   int   `json:"total"`
		Offset  int   `json:"offset"`
		Entries []bib `json:"entries"`
	}{all.records + added, offset, []bib{}}
	skipped := min(offset, all.records) // of those that are there without a gap
	for id := skipped + 1; id <= highest && len(page.Entries) < limit; id++ {
		b, ok := all.get(id)
		if !ok {
			continue
		}
		if skipped++; skipped > offset {
			page.Entries = append(page.Entries, b)
		}
	}
	return JSON(200, page)
}

func number(x *Exchange, name string, d int) (int, error) {
	v := x.Query(name)
	if v == "" {
		return d, nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	return int(n), err
}

func getBib(x *Exchange) Answer {
	id, err := strconv.Atoi(x.Value("id"))
	b, ok := bibsOf(x).get(id)
	if err != nil || !ok {
		return x.Refuse(Refusal{Kind: NotFound, Detail: "there is no such bib"})
	}
	return JSON(200, b)
}

func putBib(x *Exchange) Answer {
	all := bibsOf(x)
	id, err := strconv.Atoi(x.Value("id"))
	if err != nil || id < 1 || id > all.records+maxAdded {
		return problem(http.StatusBadRequest, fmt.Sprintf("an id is a number from 1 to %d", all.records+maxAdded))
	}
	var b bib
	if err := json.Unmarshal(x.Body, &b); err != nil || b.Title == "" || len(b.Title)+len(b.Author) > 2*maxText {
		return problem(http.StatusBadRequest, `send {"title": "…", "author": "…"}`)
	}
	b.ID = id
	status := http.StatusOK
	if _, ok := all.get(id); !ok {
		status = http.StatusCreated
	}
	all.written.Put(strconv.Itoa(id), b)
	x.Effect("bib", strconv.Itoa(id), 0)
	return JSON(status, b)
}
