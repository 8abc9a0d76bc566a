package alma

import (
	"time"

	"github.com/heedproject/heed/sim"
)

const (
	loanTime = 14 * 24 * time.Hour
	warned   = "u9" // may borrow only with override=true
)

type loan struct {
	XMLName struct{}  `json:"-" xml:"item_loan"`
	ID      string    `json:"loan_id" xml:"loan_id"`
	User    string    `json:"user_id" xml:"user_id"`
	Barcode string    `json:"item_barcode" xml:"item_barcode"`
	PID     string    `json:"item_id" xml:"item_id"`
	MMS     string    `json:"mms_id" xml:"mms_id"`
	Title   string    `json:"title" xml:"title"`
	Loaned  time.Time `json:"loan_date" xml:"loan_date"`
	Due     time.Time `json:"due_date" xml:"due_date"`
	Status  string    `json:"loan_status" xml:"loan_status"`
	Process string    `json:"process_status" xml:"process_status"`
}

type loans struct {
	XMLName struct{} `json:"-" xml:"item_loans"`
	Loans   []loan   `json:"item_loan" xml:"item_loan"`
	Total   *int     `json:"total_record_count" xml:"total_record_count,attr"`
}

func createLoan(x *sim.Exchange) sim.Answer {
	who := x.Value("user")
	if _, ok := usersOf(x).Get(who); !ok {
		return noUser(x, who)
	}
	barcode, pid := x.Query("item_barcode"), x.Query("item_pid")
	i, ok := itemOf(x, barcode, pid)
	out := sim.Rows[string](x, "items on loan")
	_, away := out.Get(i.Data.PID)
	switch {
	case barcode == "" && pid == "":
		return wrong(x, "401664", "Mandatory field is missing: item_barcode or item_pid")
	case !ok:
		return wrong(x, "401689", "No items found for barcode "+barcode+".")
	case away:
		return wrong(x, "401652", "Item is already on loan.")
	case who == warned && x.Query("override") != "true":
		return wrong(x, "401604", "Warning: the patron has a block; send override=true to go on.")
	}
	now := x.Now().UTC().Truncate(time.Second)
	l := loan{
		ID: x.ID(""), User: who, Barcode: i.Data.Barcode, PID: i.Data.PID, MMS: i.Bib.MMS, Title: i.Bib.Title,
		Loaned: now, Due: now.Add(loanTime), Status: "ACTIVE", Process: "NORMAL",
	}
	sim.Rows[loan](x, "loans").Put(l.ID, l)
	out.Put(l.PID, l.ID)
	x.Effect("loan", "", 0)
	return done(x, l)
}

func listLoans(x *sim.Exchange) sim.Answer {
	who, w, bad := listed(x)
	if bad != nil {
		return *bad
	}
	var list loans
	list.Loans, list.Total = part(w, func(yield func(loan) bool) {
		for _, l := range sim.Rows[loan](x, "loans").All() {
			if l.User == who && !yield(l) {
				return
			}
		}
	})
	return done(x, list)
}

// loanAt returns the loan of the path.
func loanAt(x *sim.Exchange) (loan, bool) {
	l, ok := sim.Rows[loan](x, "loans").Get(x.Value("loan"))
	return l, ok && l.User == x.Value("user")
}

func getLoan(x *sim.Exchange) sim.Answer {
	l, ok := loanAt(x)
	if !ok {
		return wrong(x, "401822", "Cannot find loan "+x.Value("loan")+".")
	}
	return done(x, l)
}

func renewLoan(x *sim.Exchange) sim.Answer {
	l, ok := loanAt(x)
	switch {
	case !ok:
		return wrong(x, "401822", "Cannot find loan "+x.Value("loan")+".")
	case x.Query("op") != "renew":
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "this simulator has op=renew"})
	}
	l.Due, l.Process = x.Now().UTC().Truncate(time.Second).Add(loanTime), "RENEW"
	sim.Rows[loan](x, "loans").Put(l.ID, l)
	x.Effect("renewal", l.ID, 0)
	return done(x, l)
}
