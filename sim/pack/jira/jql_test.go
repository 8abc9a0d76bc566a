package jira

import "testing"

// What is read has a condition, or the query would be one without bounds.
func FuzzJQL(f *testing.F) {
	for _, text := range []string{"", "project = HEED", `summary ~ "a b" AND key != X-1 order by created DESC`, "order by key"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, fault := parseJQL(text)
		if fault == "" && len(q.conditions) == 0 {
			t.Errorf("%q was read as no condition", text)
		}
		for _, c := range q.conditions {
			c.holds(issue{Key: "HEED-1", Fields: map[string]any{"labels": []any{1, "x"}}})
		}
	})
}
