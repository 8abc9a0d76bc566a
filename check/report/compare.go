package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/heedproject/heed/check"
)

// Change is a case that two reports judge differently.
type Change struct {
	ID            string
	Before, After check.Mark
	Cause         string // of the new one
}

// Difference is what two reports say of the cases that both have.
type Difference struct {
	Changes     []Change // in the order of the new report
	Before, Now check.Grade
	Shared      int
	New, Gone   int // cases that only one of them has
}

// Compare looks at the cases that both reports have. Others have no before, or
// no now, so the grades are those of the shared ones, too.
func Compare(old, now *check.Report) Difference {
	was := map[string]check.Result{}
	for _, one := range old.Results {
		was[one.ID] = one
	}
	var d Difference
	var before, after []check.Result
	for _, one := range now.Results {
		then, ok := was[one.ID]
		if !ok {
			d.New++
			continue
		}
		before, after = append(before, then), append(after, one)
		if then.Mark != one.Mark {
			d.Changes = append(d.Changes, Change{one.ID, then.Mark, one.Mark, one.Cause})
		}
	}
	d.Shared = len(after)
	d.Gone = max(len(old.Results)-d.Shared, 0)
	d.Before, d.Now = check.Sum(before), check.Sum(after)
	return d
}

// Changes writes what Compare found.
func Changes(w io.Writer, old, now *check.Report, t Terminal) error {
	b := bufio.NewWriter(w)
	d := Compare(old, now)
	fmt.Fprintf(b, "of %s in both reports: grade %s before, %s now; %s changed", plural(d.Shared, "case"), d.Before.Told(), d.Now.Told(),
		plural(len(d.Changes), "case"))
	if d.New+d.Gone > 0 {
		fmt.Fprintf(b, "; left out: %d new, %d gone", d.New, d.Gone)
	}
	b.WriteByte('\n')
	for _, c := range d.Changes {
		fmt.Fprintf(b, "  %s: %s, was %s: %s\n", c.ID, t.paint(paint[c.After], string(c.After)), c.Before, c.Cause)
	}
	b.WriteByte('\n')
	return b.Flush()
}
