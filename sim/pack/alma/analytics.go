package alma

import (
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

const (
	leastRows = 25
	mostRows  = 1000
)

// walk is how far a caller is with a report.
type walk struct {
	Path        string
	Limit, Next int
}

type row struct {
	Number int    `xml:"Column0"`
	Title  string `xml:"Column1"`
	Loans  int    `xml:"Column2"`
}

// query is a page of a report. The token is told on the first page only.
type query struct {
	XMLName  struct{} `xml:"QueryResult"`
	Token    string   `xml:"ResumptionToken,omitempty"`
	Finished bool     `xml:"IsFinished"`
	Rows     rowset   `xml:"ResultXml>rowset"`
}

type rowset struct {
	Space string `xml:"xmlns,attr"`
	Rows  []row  `xml:"Row"`
}

// report gives the next page of a walk. The place is kept here and not with
// the caller: a page that was lost on the way is not given again.
func report(x *sim.Exchange) sim.Answer {
	walks := sim.Rows[walk](x, "walks")
	token := x.Query("token")
	w, known := walks.Get(token)
	if token != "" && !known {
		return wrong(x, "420034", "The token is not valid any more.")
	}
	if !known {
		if w.Path = x.Query("path"); !strings.HasPrefix(w.Path, "/shared/") {
			return failed(x, 500, "INTERNAL_SERVER_ERROR", "Path not found ("+w.Path+")")
		}
		var err error
		if w.Limit, err = strconv.Atoi(x.Query("limit")); err != nil {
			w.Limit = mostRows
		}
		w.Limit = min(max(w.Limit, leastRows), mostRows)
	}
	rows := x.World().Records
	if w.Next >= rows && w.Next > 0 {
		return wrong(x, "420033", "No more rows to fetch")
	}
	q := query{Rows: rowset{Space: "urn:schemas-microsoft-com:xml-analysis:rowset"}}
	for n := w.Next + 1; n <= min(w.Next+w.Limit, rows); n++ {
		q.Rows.Rows = append(q.Rows.Rows, row{n, stock.Title(x, n), n % 17})
	}
	w.Next += w.Limit
	q.Finished = w.Next >= rows
	if !known {
		token = x.ID("")
		q.Token = token
	}
	walks.Put(token, w)
	return paper(x, q)
}

// paper writes a page: in JSON it is a text with XML in it.
func paper(x *sim.Exchange, q query) sim.Answer {
	if !asJSON(x) {
		return done(x, struct {
			XMLName struct{} `xml:"report"`
			Query   query
		}{Query: q})
	}
	inner, err := xml.Marshal(q)
	if err != nil {
		return sim.Text(500, "text/plain", "the report cannot be written: "+err.Error())
	}
	return done(x, struct {
		Anies []string `json:"anies"`
	}{[]string{xml.Header + string(inner)}})
}
