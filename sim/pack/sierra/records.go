package sierra

import (
	"strconv"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

// Numbers of records begin here; number 1 of a kind has one more.
const (
	firstBib    = 1_000_000
	firstItem   = 2_000_000
	firstPatron = 3_000_000
)

// began is when the first record of a library was changed; the others follow
// hour by hour.
var began = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

const day = "2006-01-02"

// record is what all kinds have.
type record struct {
	ID      string    `json:"id"`
	Updated time.Time `json:"updatedDate,omitzero"`
	Created time.Time `json:"createdDate,omitzero"`
	Gone    string    `json:"deletedDate,omitempty"` // a day without time
	Deleted bool      `json:"deleted"`
}

func (r record) head() record { return r }

func newRecord(first, n int) record {
	at := began.Add(time.Duration(n) * time.Hour)
	return record{ID: strconv.Itoa(first + n), Updated: at, Created: at}
}

type bib struct {
	record
	Suppressed bool   `json:"suppressed"`
	Title      string `json:"title"`
	Author     string `json:"author"`
	Material   coded  `json:"materialType"`
	Year       int    `json:"publishYear"`
}

type coded struct {
	Code  string `json:"code"`
	Value string `json:"value"`
}

type item struct {
	record
	Bibs     []string `json:"bibIds"`
	Location place    `json:"location"`
	Status   state    `json:"status"`
	Barcode  string   `json:"barcode"`
	Call     string   `json:"callNumber"`
}

type place struct {
	Code string `json:"code"`
	Name string `json:"name"`
}

type state struct {
	Code    string `json:"code"`
	Display string `json:"display"`
}

type patron struct {
	record
	Names    []string `json:"names"`
	Barcodes []string `json:"barcodes"`
	Emails   []string `json:"emails"`
	Phones   []phone  `json:"phones,omitempty"`
	Type     int      `json:"patronType"`
	Ends     string   `json:"expirationDate"`
	PIN      string   `json:"-"`
}

type phone struct {
	Number string `json:"number"`
	Type   string `json:"type"`
}

// kind is the stock of one kind of records, whose numbers begin at first.
func kind[T any](name string, first, made int, make func(n int) T) stock.Kind[T] {
	return stock.Kind[T]{
		Name: name, Made: made, Make: make,
		ID: func(n int) string { return strconv.Itoa(first + n) },
		Number: func(id string) int {
			n, _ := strconv.Atoi(id)
			return n - first
		},
	}
}

func bibs(x *sim.Exchange) stock.Stock[bib] {
	return stock.Open(x, kind("bibs", firstBib, x.World().Records, func(n int) bib {
		return bib{record: newRecord(firstBib, n), Title: stock.Title(x, n), Author: stock.Author(x, n),
			Material: coded{"a", "Book"}, Year: 1950 + n%70}
	}))
}

// items are two to a bib.
func items(x *sim.Exchange) stock.Stock[item] {
	return stock.Open(x, kind("items", firstItem, 2*x.World().Records, func(n int) item {
		return item{record: newRecord(firstItem, n), Bibs: []string{strconv.Itoa(firstBib + (n+1)/2)},
			Location: place{"main", "Main library"}, Status: state{"-", "AVAILABLE"},
			Barcode: "3300" + strconv.Itoa(firstItem+n), Call: "Z " + strconv.Itoa(n)}
	}))
}

func patrons(x *sim.Exchange) stock.Stock[patron] {
	return stock.Open(x, kind("patrons", firstPatron, x.World().Records, func(n int) patron {
		given, family := stock.Person(x, n)
		id := strconv.Itoa(firstPatron + n)
		return patron{record: newRecord(firstPatron, n), Names: []string{family + ", " + given}, Barcodes: []string{"2200" + id},
			Emails: []string{"p" + id + "@library.example"}, Ends: "2030-12-31", PIN: strconv.Itoa(4710 + n)}
	}))
}

// The whole of a record, or what is left of it once it was deleted.
func wholeBib(v bib) any {
	if v.Deleted {
		return v.rest()
	}
	return v
}

func wholeItem(v item) any {
	if v.Deleted {
		return v.rest()
	}
	return v
}

// No patron is ever deleted here.
func wholePatron(v patron) any { return v }

func (r record) rest() record { return record{ID: r.ID, Gone: r.Gone, Deleted: true} }
