package folio

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// query is a CQL query that was read. A nil where takes every record.
type query struct {
	where func(doc) bool
	sort  string // a path; "": as they are
	down  bool
}

// order sorts, where the query says so.
func (q query) order(page []doc) {
	if q.sort == "" {
		return
	}
	slices.SortStableFunc(page, func(a, b doc) int {
		n := strings.Compare(field(a, q.sort), field(b, q.sort))
		if q.down {
			return -n
		}
		return n
	})
}

// field is the text at a path such as personal.lastName; "" where there is none.
func field(d doc, path string) string {
	var v any = map[string]any(d)
	for name := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[name]
	}
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// parseCQL reads clauses joined by and, or, not from left to right, and
// sortBy. Brackets are for later versions of CQL, not for this one.
func parseCQL(text string) (q query, err error) {
	words, err := split(text)
	if err != nil || len(words) == 0 {
		return q, err
	}
	join := "and"
	for {
		if len(words) < 3 {
			return q, fmt.Errorf("a clause is index, relation, text; got %q", strings.Join(words, " "))
		}
		one, err := clause(words[0], words[1], words[2])
		if err != nil {
			return q, err
		}
		q.where = joined(q.where, join, one)
		if words = words[3:]; len(words) == 0 {
			return q, nil
		}
		join, words = strings.ToLower(words[0]), words[1:]
		switch join {
		case "and", "or", "not":
		case "sortby":
			return q, q.readSort(words)
		default:
			return q, fmt.Errorf("and, or, not or sortBy is expected before %q", join)
		}
	}
}

func (q *query) readSort(words []string) error {
	if len(words) != 1 {
		return errors.New("sortBy takes one index")
	}
	q.sort, q.down = words[0], false
	if path, how, ok := strings.Cut(words[0], "/"); ok {
		q.sort, q.down = path, how == "sort.descending"
	}
	return nil
}

func joined(a func(doc) bool, join string, b func(doc) bool) func(doc) bool {
	switch {
	case join == "or":
		return func(d doc) bool { return a(d) || b(d) }
	case join == "not":
		return func(d doc) bool { return a(d) && !b(d) }
	case a == nil:
		return b
	}
	return func(d doc) bool { return a(d) && b(d) }
}

// clause is one comparison. = finds words and a beginning before *, == the
// whole text.
func clause(index, relation, text string) (func(doc) bool, error) {
	if index == "cql.allRecords" {
		return func(doc) bool { return true }, nil
	}
	compare := func(holds func(int) bool) (func(doc) bool, error) {
		return func(d doc) bool { v := field(d, index); return v != "" && holds(strings.Compare(v, text)) }, nil
	}
	switch relation {
	case "==":
		if begin, ok := strings.CutSuffix(text, "*"); ok {
			return func(d doc) bool { return strings.HasPrefix(field(d, index), begin) }, nil
		}
		return compare(func(n int) bool { return n == 0 })
	case "<>":
		return compare(func(n int) bool { return n != 0 })
	case "<":
		return compare(func(n int) bool { return n < 0 })
	case "<=":
		return compare(func(n int) bool { return n <= 0 })
	case ">":
		return compare(func(n int) bool { return n > 0 })
	case ">=":
		return compare(func(n int) bool { return n >= 0 })
	case "=", "all":
		return func(d doc) bool { return hasWords(field(d, index), text) }, nil
	}
	return nil, fmt.Errorf("there is no relation %q", relation)
}

// hasWords tells whether every word of wanted is in text, whatever the case.
func hasWords(text, wanted string) bool {
	have := strings.Fields(strings.ToLower(text))
	for w := range strings.FieldsSeq(strings.ToLower(wanted)) {
		begin, cut := strings.CutSuffix(w, "*")
		if !slices.ContainsFunc(have, func(h string) bool { return h == w || cut && strings.HasPrefix(h, begin) }) {
			return false
		}
	}
	return true
}

// split takes a query apart into words, relations and quoted texts.
func split(text string) (words []string, err error) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		if text[0] == '"' {
			word, rest, err := quoted(text[1:])
			if err != nil {
				return nil, err
			}
			words, text = append(words, word), rest
			continue
		}
		if n := len(text) - len(strings.TrimLeft(text, "=<>")); n > 0 {
			words, text = append(words, text[:n]), text[n:]
			continue
		}
		n := strings.IndexAny(text, " =<>\"\t\n\v\f\r")
		if n < 0 {
			n = len(text)
		}
		if strings.ContainsAny(text[:n], "()") {
			return nil, errors.New("this simulator has no brackets in queries")
		}
		if n == 0 {
			return nil, fmt.Errorf("%q is not expected", text[:1])
		}
		words, text = append(words, text[:n]), text[n:]
	}
	return words, nil
}

// quoted reads up to the closing quote; a backslash takes the next as it is.
func quoted(text string) (word, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			if i++; i == len(text) {
				return "", "", errors.New("a backslash at the end")
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", errors.New("a quote is not closed")
}
