package alma

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

type bib struct {
	XMLName  struct{}   `json:"-" xml:"bib"`
	MMS      string     `json:"mms_id" xml:"mms_id"`
	Title    string     `json:"title,omitempty" xml:"title,omitempty"`
	Author   string     `json:"author,omitempty" xml:"author,omitempty"`
	Format   string     `json:"record_format,omitempty" xml:"record_format,omitempty"`
	Holdings string     `json:"holding_id,omitempty" xml:"holding_id,omitempty"`
	Errors   *errorList `json:"errorList,omitempty" xml:"errorList,omitempty"`
}

type bibs struct {
	XMLName struct{} `json:"-" xml:"bibs"`
	Bibs    []bib    `json:"bib" xml:"bib"`
	Total   *int     `json:"total_record_count" xml:"total_record_count,attr"`
}

// Ids are a prefix for the kind, a number, and that of the institution.
const institution = "0101"

func id(prefix string, n int) string { return fmt.Sprintf("%s%07d%s", prefix, n, institution) }

func number(prefix, id string) int {
	text, ok := strings.CutPrefix(id, prefix)
	n, err := strconv.Atoi(strings.TrimSuffix(text, institution))
	if !ok || err != nil {
		return 0
	}
	return n
}

// bibOf returns the bib with this id. Each has one holding with two items.
func bibOf(x *sim.Exchange, mms string) (bib, bool) {
	n := number("99", mms)
	if n < 1 || n > x.World().Records || id("99", n) != mms {
		return bib{}, false
	}
	return bib{MMS: mms, Title: stock.Title(x, n), Author: stock.Author(x, n), Format: "marc21", Holdings: id("22", n)}, true
}

func noBib(mms string) oneError {
	return oneError{Code: "402203", Message: "Input parameters mmsId " + mms + " is not valid."}
}

// listBibs gives those that were asked for by their ids, at most 100. One that
// is not there is an element with an error, and the status tells nothing.
func listBibs(x *sim.Exchange) sim.Answer {
	asked := strings.Split(x.Query("mms_id"), ",")
	if x.Query("mms_id") == "" || len(asked) > maxPage {
		return wrong(x, "402204", "give mms_id with 1 to 100 ids")
	}
	list := bibs{Bibs: []bib{}}
	missing := 0
	for _, mms := range asked {
		b, ok := bibOf(x, mms)
		if !ok {
			missing++
			b = bib{MMS: mms, Errors: &errorList{[]oneError{noBib(mms)}}}
		}
		list.Bibs = append(list.Bibs, b)
	}
	if missing == len(asked) {
		return wrong(x, "402203", noBib(asked[0]).Message)
	}
	n := len(list.Bibs)
	list.Total = &n
	return done(x, list)
}

func getBib(x *sim.Exchange) sim.Answer {
	b, ok := bibOf(x, x.Value("mms"))
	if !ok {
		return wrong(x, "402203", noBib(x.Value("mms")).Message)
	}
	return done(x, b)
}

type item struct {
	XMLName struct{} `json:"-" xml:"item"`
	Bib     struct {
		MMS   string `json:"mms_id" xml:"mms_id"`
		Title string `json:"title" xml:"title"`
	} `json:"bib_data" xml:"bib_data"`
	Holding struct {
		ID string `json:"holding_id" xml:"holding_id"`
	} `json:"holding_data" xml:"holding_data"`
	Data struct {
		PID     string `json:"pid" xml:"pid"`
		Barcode string `json:"barcode" xml:"barcode"`
		Base    value  `json:"base_status" xml:"base_status"`
		Process value  `json:"process_type" xml:"process_type"`
	} `json:"item_data" xml:"item_data"`
	Link string `json:"link,omitempty" xml:"link,attr,omitempty"`
}

type items struct {
	XMLName struct{} `json:"-" xml:"items"`
	Items   []item   `json:"item" xml:"item"`
	Total   *int     `json:"total_record_count" xml:"total_record_count,attr"`
}

// makeItem makes item n, as it is now.
func makeItem(x *sim.Exchange, n int) (i item) {
	of := (n + 1) / 2
	i.Bib.MMS, i.Bib.Title = id("99", of), stock.Title(x, of)
	i.Holding.ID = id("22", of)
	i.Data.PID, i.Data.Barcode = id("23", n), "A"+strconv.Itoa(n)
	i.Data.Base = value{"1", "Item in place"}
	if _, out := sim.Rows[string](x, "items on loan").Get(i.Data.PID); out {
		i.Data.Base, i.Data.Process = value{"0", "Item not in place"}, value{"LOAN", "Loan"}
	}
	i.Link = x.URL(root + "/bibs/" + i.Bib.MMS + "/holdings/" + i.Holding.ID + "/items/" + i.Data.PID)
	return i
}

// itemAt returns the item with the ids of the path.
func itemAt(x *sim.Exchange) (item, bool) {
	n := number("23", x.Value("pid"))
	if n < 1 || n > 2*x.World().Records {
		return item{}, false
	}
	i := makeItem(x, n)
	return i, i.Data.PID == x.Value("pid") && i.Holding.ID == x.Value("holding") && i.Bib.MMS == x.Value("mms")
}

// itemOf returns the item with this barcode or pid.
func itemOf(x *sim.Exchange, barcode, pid string) (item, bool) {
	n, _ := strconv.Atoi(strings.TrimPrefix(barcode, "A"))
	if pid != "" {
		n = number("23", pid)
	}
	if n < 1 || n > 2*x.World().Records {
		return item{}, false
	}
	i := makeItem(x, n)
	return i, i.Data.Barcode == barcode || i.Data.PID == pid
}

func listItems(x *sim.Exchange) sim.Answer {
	b, ok := bibOf(x, x.Value("mms"))
	w, good := windowOf(x)
	switch {
	case !ok || b.Holdings != x.Value("holding"):
		return wrong(x, "402203", noBib(x.Value("mms")).Message)
	case !good:
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "limit and offset are numbers"})
	}
	last := 2 * number("99", b.MMS)
	var list items
	list.Items, list.Total = part(w, slices.Values([]item{makeItem(x, last-1), makeItem(x, last)}))
	return done(x, list)
}

func getItem(x *sim.Exchange) sim.Answer {
	i, ok := itemAt(x)
	if !ok {
		return wrong(x, "401683", "No items found for pid "+x.Value("pid")+".")
	}
	return done(x, i)
}

// scanItem takes an item back.
func scanItem(x *sim.Exchange) sim.Answer {
	i, ok := itemAt(x)
	switch {
	case !ok:
		return wrong(x, "401683", "No items found for pid "+x.Value("pid")+".")
	case x.Query("op") != "scan":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "this simulator has op=scan"})
	}
	out := sim.Rows[string](x, "items on loan")
	if loaned, ok := out.Get(i.Data.PID); ok {
		sim.Rows[loan](x, "loans").Delete(loaned)
		out.Delete(i.Data.PID)
		x.Effect("return", "", 0)
	}
	return done(x, makeItem(x, number("23", i.Data.PID)))
}

// findItem leads to the item with this barcode.
func findItem(x *sim.Exchange) sim.Answer {
	i, ok := itemOf(x, x.Query("item_barcode"), "")
	if !ok {
		return wrong(x, "401689", "No items found for barcode "+x.Query("item_barcode")+".")
	}
	return sim.Answer{Status: 302, Fields: [][2]string{{"Location", i.Link}, {"Content-Type", ""}}}
}
