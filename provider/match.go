package provider

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider/sheet"
)

var methodPattern = regexp.MustCompile(`^[A-Z][A-Z-]*$`)

// Methods is a list of HTTP methods.
func Methods(p *[]string) sheet.Value { return sheet.List(p, method) }

func method(m *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if !methodPattern.MatchString(text) {
				return fmt.Errorf("%q is not a method", text)
			}
			*m = text
			return nil
		},
		Show:    func() (string, bool) { return *m, *m != "" },
		Remedy:  "write methods in capital letters, such as GET",
		Pattern: methodPattern.String(),
	}
}

// Globs is a list of globs of paths.
func Globs(p *[]string) sheet.Value { return sheet.List(p, Glob) }

// Glob is a glob of paths.
func Glob(g *string) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "*") || strings.ContainsAny(text, "?# ") {
				return errors.New("this is not the glob of a path")
			}
			*g = text
			return nil
		},
		Show:    func() (string, bool) { return *g, *g != "" },
		Remedy:  "begin it with /, without query, such as /v6/bibs/**",
		Pattern: `^[/*][^?# ]*$`,
		Example: "/v6/bibs/**",
	}
}

var statusPattern = regexp.MustCompile(`^([1-9])xx$|^([1-9][0-9][0-9])(?:-([1-9][0-9][0-9]))?$`)

func statusRange(s *classify.StatusRange) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			m := statusPattern.FindStringSubmatch(text)
			switch {
			case m == nil:
				return fmt.Errorf("%q is no status", text)
			case m[1] != "":
				*s = classify.StatusRange{From: atoi(m[1] + "00"), To: atoi(m[1] + "99")}
			case m[3] != "":
				*s = classify.StatusRange{From: atoi(m[2]), To: atoi(m[3])}
			default:
				*s = classify.StatusRange{From: atoi(m[2]), To: atoi(m[2])}
			}
			if s.From > s.To {
				return fmt.Errorf("%q ends before it begins", text)
			}
			return nil
		},
		Show:    func() (string, bool) { return showStatus(*s), true },
		Remedy:  "write a status, a class or a range: 429, 5xx, 500-504",
		Pattern: statusPattern.String(),
		Example: "5xx",
		Numeric: true,
	}
}

func atoi(digits string) int {
	n, _ := strconv.Atoi(digits) // three digits
	return n
}

func showStatus(s classify.StatusRange) string {
	switch {
	case s.From%100 == 0 && s.To == s.From+99:
		return strconv.Itoa(s.From/100) + "xx"
	case s.From == s.To:
		return strconv.Itoa(s.From)
	}
	return fmt.Sprintf("%d-%d", s.From, s.To)
}

// pattern is a regular expression (RE2), which takes linear time on any body.
func pattern(p **regexp.Regexp) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			re, err := compilePattern(text)
			if err == nil {
				*p = re
			}
			return err
		},
		Show: func() (string, bool) {
			if *p == nil {
				return "", false
			}
			return (*p).String(), true
		},
		Remedy:  "write a regular expression in RE2 syntax",
		Example: "^quota .* exceeded$",
		Numeric: true,
	}
}

func compilePattern(text string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(text)
	if s, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, fmt.Errorf("this is not a regular expression: %s", s.Code)
	}
	return re, err
}

// jsonPath is a compiled JSON path (RFC 9535) that knows how it was written.
type jsonPath struct {
	text string
	path *jsonpath.Path
}

// String returns the path as it was written.
func (j jsonPath) String() string { return j.text }

// Select implements classify.Selector.
func (j jsonPath) Select(doc any) []any { return j.path.Select(doc) }

// Path is a JSON path that takes linear time.
func Path(p *classify.Selector) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) error {
			compiled, err := compilePath(text)
			if err == nil {
				*p = jsonPath{text, compiled}
			}
			return err
		},
		Show: func() (string, bool) {
			j, ok := (*p).(jsonPath)
			return j.text, ok
		},
		Remedy:  "write it as in RFC 9535, such as $.error.code or $.errors[*].code",
		Pattern: `^\$`,
		Example: "$.error.code",
	}
}

func jsonMatch(j *classify.JSONMatch) sheet.Value {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "path", Doc: "A JSON path (RFC 9535).", Required: true, Value: Path(&j.Path)},
		{Name: "value", Doc: "A regular expression that one of the selected values must match.", Value: pattern(&j.Value)},
		{Name: "absent", Doc: "Nothing may be selected.", Value: sheet.If(j.Absent, sheet.Bool(&j.Absent))},
	}}
}

// xmlMatch is a condition that need not be there.
type xmlMatch struct{ p **classify.XMLMatch }

func (x xmlMatch) fields(m *classify.XMLMatch) sheet.Block {
	return sheet.Block{Fields: []sheet.Field{
		{Name: "names", Doc: "Local names of elements, in any namespace.", Required: true, Value: sheet.Texts(&m.Names)},
		{Name: "attr", Doc: "The local name of an attribute that the element must have.", Value: sheet.Text(&m.Attr)},
		{Name: "value", Doc: "A regular expression for the attribute, or without attr for the text of the element.", Value: pattern(&m.Value)},
	}}
}

// Read implements sheet.Value.
func (x xmlMatch) Read(r *sheet.Reader, n *sheet.Node, path string) {
	m := new(classify.XMLMatch)
	x.fields(m).Read(r, n, path)
	*x.p = m
}

// Write implements sheet.Value.
func (x xmlMatch) Write() *sheet.Node {
	if *x.p == nil {
		return nil
	}
	return x.fields(*x.p).Write()
}

// Schema implements sheet.Value.
func (x xmlMatch) Schema() map[string]any { return x.fields(new(classify.XMLMatch)).Schema() }

// headerMatch writes conditions on headers as a mapping from name to what its
// value must be.
type headerMatch struct{ p *[]classify.HeaderMatch }

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (h headerMatch) table(m *map[string]classify.HeaderMatch) sheet.Value {
	return sheet.Map[classify.HeaderMatch]{
		P:       m,
		Pattern: headerName.String(),
		Name:    HeaderName,
		One:     headerValue,
	}
}

// HeaderName says what is wrong with the name of a header (RFC 9110 §5.1).
func HeaderName(name string) error {
	if !headerName.MatchString(name) {
		return errors.New("this is not the name of a header")
	}
	return nil
}

func headerValue(m *classify.HeaderMatch) sheet.Value {
	return sheet.Parsed{
		Parse: func(text string) (err error) {
			switch text {
			case "present", "absent":
				is := text == "present"
				m.Present = &is
			default:
				m.Value, err = compilePattern(text)
			}
			return err
		},
		Show: func() (string, bool) {
			switch {
			case m.Value != nil:
				return m.Value.String(), true
			case m.Present != nil && !*m.Present:
				return "absent", true
			}
			return "present", true
		},
		Remedy:  "write present, absent or a regular expression",
		Numeric: true,
	}
}

// Read implements sheet.Value.
func (h headerMatch) Read(r *sheet.Reader, n *sheet.Node, path string) {
	var byName map[string]classify.HeaderMatch
	h.table(&byName).Read(r, n, path)
	*h.p = nil
	for name, m := range byName {
		m.Name = name
		*h.p = append(*h.p, m)
	}
	slices.SortFunc(*h.p, func(a, b classify.HeaderMatch) int { return strings.Compare(a.Name, b.Name) })
}

// Write implements sheet.Value.
func (h headerMatch) Write() *sheet.Node {
	byName := make(map[string]classify.HeaderMatch, len(*h.p))
	for _, m := range *h.p {
		byName[m.Name] = m
	}
	return h.table(&byName).Write()
}

// Schema implements sheet.Value.
func (h headerMatch) Schema() map[string]any {
	return h.table(new(map[string]classify.HeaderMatch)).Schema()
}
