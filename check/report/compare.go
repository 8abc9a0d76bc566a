package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/heedproject/heed/check"
)

// Change is a case that two reports judge differently. Before or After is
// empty where the report does not have it.
type Change struct {
	ID            string
	Before, After check.Mark
	Cause         string // of the new one, or of the old where there is none
}

// Compare lists what changed, in the order of the new report.
func Compare(old, now *check.Report) []Change {
	was := map[string]check.Result{}
	for _, one := range old.Results {
		was[one.ID] = one
	}
	var all []Change
	for _, one := range now.Results {
		before, ok := was[one.ID]
		delete(was, one.ID)
		if !ok || before.Mark != one.Mark {
			all = append(all, Change{one.ID, before.Mark, one.Mark, one.Cause})
		}
	}
	for _, one := range old.Results {
		if _, gone := was[one.ID]; gone {
			all = append(all, Change{one.ID, one.Mark, "", one.Cause})
		}
	}
	return all
}

// Changes writes what Compare found.
func Changes(w io.Writer, old, now *check.Report, t Terminal) error {
	b := bufio.NewWriter(w)
	changes := Compare(old, now)
	fmt.Fprintf(b, "grade %s before, %s now; %s changed\n", old.Grade, now.Grade, plural(len(changes), "case"))
	for _, c := range changes {
		before, after := c.Before, c.After
		if before == "" {
			before = "new"
		}
		if after == "" {
			after = "gone"
		}
		fmt.Fprintf(b, "  %s: %s, was %s: %s\n", c.ID, t.paint(paint[c.After], string(after)), before, c.Cause)
	}
	b.WriteByte('\n')
	return b.Flush()
}
