package jira

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/heedproject/heed/sim"
)

// query is JQL that was read: conditions that must all hold, and an order.
type query struct {
	conditions []condition
	descending bool
}

type condition struct{ field, sign, value string }

// grammar is the little of the language that is known here; compiled when first
// used, as every start of heed would pay for it.
type grammar struct{ orderBy, andWord, clause *regexp.Regexp }

var jql = sync.OnceValue(func() grammar {
	return grammar{
		orderBy: regexp.MustCompile(`(?i)(?:^|\s+)order\s+by\s+(\w+)(?:\s+(asc|desc))?\s*$`),
		andWord: regexp.MustCompile(`(?i)\s+and\s+`),
		clause:  regexp.MustCompile(`^\s*(\w+)\s*(=|!=|~)\s*("[^"]*"|'[^']*'|[^\s"']+)\s*$`),
	}
})

var fields = []string{"project", "status", "key", "issuekey", "assignee", "labels", "summary"}

// parseJQL reads a query, or says in Jira's words what is wrong with it. One
// that restricts nothing is refused, as it is by the real one.
func parseJQL(text string) (q query, fault string) {
	if m := jql().orderBy.FindStringSubmatch(text); m != nil {
		if by := strings.ToLower(m[1]); by != "created" && by != "key" {
			return q, "Field '" + m[1] + "' does not exist or cannot be sorted by here; use created or key."
		}
		q.descending = strings.EqualFold(m[2], "desc")
		text = text[:len(text)-len(m[0])]
	}
	if strings.TrimSpace(text) == "" {
		return q, "Unbounded JQL queries are not allowed here. Please add a search restriction to your query."
	}
	for _, part := range jql().andWord.Split(text, -1) {
		m := jql().clause.FindStringSubmatch(part)
		if m == nil {
			return q, "Error in the JQL Query: this simulator reads conditions such as project = HEED with AND between them, and no '" + strings.TrimSpace(part) + "'."
		}
		c := condition{strings.ToLower(m[1]), m[2], strings.Trim(m[3], `"'`)}
		if !slices.Contains(fields, c.field) {
			return q, "Field '" + m[1] + "' does not exist or you do not have permission to view it."
		}
		q.conditions = append(q.conditions, c)
	}
	return q, ""
}

// run returns the issues for which all conditions hold.
func (q query) run(x *sim.Exchange) []issue {
	var all []issue
	for _, i := range issues(x).All() {
		if !slices.ContainsFunc(q.conditions, func(c condition) bool { return !c.holds(i) }) {
			all = append(all, i)
		}
	}
	if q.descending {
		slices.Reverse(all)
	}
	return all
}

func (c condition) holds(i issue) bool {
	var have []string
	switch c.field {
	case "project":
		have = []string{i.Project}
	case "status":
		have = []string{i.Status}
	case "key", "issuekey":
		have = []string{i.Key}
	case "summary":
		have = []string{fmt.Sprint(i.Fields["summary"])}
	case "assignee":
		if a, ok := i.Fields["assignee"].(map[string]any); ok {
			have = []string{fmt.Sprint(a["accountId"])}
		}
	case "labels":
		if l, ok := i.Fields["labels"].([]any); ok {
			for _, one := range l {
				have = append(have, fmt.Sprint(one))
			}
		}
	}
	found := slices.ContainsFunc(have, func(h string) bool {
		if c.sign == "~" {
			return strings.Contains(strings.ToLower(h), strings.ToLower(c.value))
		}
		return strings.EqualFold(h, c.value)
	})
	return found != (c.sign == "!=")
}
