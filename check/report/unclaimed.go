package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heedproject/heed/check"
)

// mostClaims are those that the scorecard names.
const mostClaims = 6

// inTemplate is what a command must have in its template for a claim.
var inTemplate = map[check.Claim]string{check.Writes: "use {method} {header} {body}", check.Headers: "use {header}", check.Deadlines: "use {deadline}"}

// unclaimed says how many cases are n/a for want of which claim, and how it is
// made. Empty: none are.
func (t Terminal) unclaimed(results []check.Result) string {
	counts := map[check.Claim]int{}
	for _, one := range results {
		if one.Mark == check.NA && one.Lacks != "" {
			name, _, _ := strings.Cut(string(one.Lacks), "=")
			counts[check.Claim(name)]++
		}
	}
	var names []check.Claim
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b check.Claim) int { return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b)) })
	var parts []string
	others := 0
	for i, name := range names {
		if i >= mostClaims {
			others += counts[name]
			continue
		}
		how := "--claim " + string(name)
		if words := inTemplate[name]; t.Command && words != "" {
			how = words
		} else if name == check.Concurrency || name == check.Cap || name == check.Timeouts {
			how += "=…"
		}
		parts = append(parts, fmt.Sprintf("%d need %s (%s)", counts[name], name, how))
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("%d need others (heed check list)", others))
	}
	if len(parts) == 0 {
		return ""
	}
	return "n/a: " + strings.Join(parts, ", ") + "; claim only what the client does"
}
