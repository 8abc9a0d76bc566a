package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
)

// schema checks documents by the part of JSON Schema (draft 2020-12) that the
// schemas here need; unchecked finds what they would need beyond it.
type schema struct{ root map[string]any }

var (
	checked = []string{"$ref", "type", "const", "enum", "pattern", "minimum", "maximum", "minItems", "maxItems",
		"minProperties", "required", "properties", "additionalProperties", "items", "anyOf"}
	remarks = []string{"$schema", "$comment", "$defs"}
)

func newSchema(text []byte) (*schema, error) {
	var s schema
	return &s, json.Unmarshal(text, &s.root)
}

// problems returns what is wrong with doc, in order of place.
func (s *schema) problems(doc any) []string {
	var found []string
	s.check(s.root, doc, place{report: func(at, what string) { found = append(found, at+": "+what) }})
	return found
}

// place is where in the document the check has come to.
type place struct {
	path   string
	report func(at, what string)
}

func (p place) bad(format string, args ...any) { p.report(p.path, fmt.Sprintf(format, args...)) }

func (p place) at(name string) place {
	if p.path != "" && !strings.HasPrefix(name, "[") {
		name = "." + name
	}
	return place{p.path + name, p.report}
}

func (s *schema) check(rule map[string]any, v any, p place) {
	if ref, ok := rule["$ref"].(string); ok {
		s.check(s.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), v, p)
	}
	if kind, ok := rule["type"].(string); ok && !isA(kind, v) {
		p.bad("%s is no %s", told(v), kind)
		return
	}
	if want, ok := rule["const"]; ok && v != want {
		p.bad("%s is not %s", told(v), told(want))
	}
	if list, ok := rule["enum"].([]any); ok && !slices.Contains(list, v) {
		p.bad("%s is none of its values", told(v))
	}
	if list, ok := rule["anyOf"].([]any); ok && !slices.ContainsFunc(list, func(one any) bool { return s.fits(one, v) }) {
		p.bad("none of its alternatives fits")
	}
	switch v := v.(type) {
	case string:
		if pattern, ok := rule["pattern"].(string); ok && !regexp.MustCompile(pattern).MatchString(v) {
			p.bad("%s does not match %s", told(v), pattern)
		}
	case float64:
		checkNumber(rule, v, p)
	case []any:
		s.checkList(rule, v, p)
	case map[string]any:
		s.checkObject(rule, v, p)
	}
}

func (s *schema) fits(rule, v any) bool {
	good := true
	s.check(rule.(map[string]any), v, place{report: func(string, string) { good = false }})
	return good
}

func checkNumber(rule map[string]any, v float64, p place) {
	if low, ok := rule["minimum"].(float64); ok && v < low {
		p.bad("%v is less than %v", v, low)
	}
	if high, ok := rule["maximum"].(float64); ok && v > high {
		p.bad("%v is more than %v", v, high)
	}
}

func (s *schema) checkList(rule map[string]any, v []any, p place) {
	if low, ok := rule["minItems"].(float64); ok && len(v) < int(low) {
		p.bad("has %d items, fewer than %v", len(v), low)
	}
	if high, ok := rule["maxItems"].(float64); ok && len(v) > int(high) {
		p.bad("has %d items, more than %v", len(v), high)
	}
	if one, ok := rule["items"].(map[string]any); ok {
		for i, item := range v {
			s.check(one, item, p.at(fmt.Sprintf("[%d]", i)))
		}
	}
}

func (s *schema) checkObject(rule map[string]any, v map[string]any, p place) {
	if low, ok := rule["minProperties"].(float64); ok && len(v) < int(low) {
		p.bad("has %d fields, fewer than %v", len(v), low)
	}
	required, _ := rule["required"].([]any)
	for _, name := range required {
		if _, ok := v[name.(string)]; !ok {
			p.bad("%s is missing", name)
		}
	}
	known, _ := rule["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if one, ok := known[name].(map[string]any); ok {
			s.check(one, v[name], p.at(name))
			continue
		}
		switch rest := rule["additionalProperties"].(type) {
		case map[string]any:
			s.check(rest, v[name], p.at(name))
		case bool:
			if !rest {
				p.at(name).bad("the field is not known here")
			}
		}
	}
}

func isA(kind string, v any) bool {
	switch v := v.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return kind == "null"
}

// told writes v as JSON has it.
func told(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// unchecked lists the rules of a schema, and of those within it, that check
// does not know.
func unchecked(rule map[string]any, found []string) []string {
	for name, v := range rule {
		switch {
		case name == "properties" || name == "$defs":
			for _, one := range v.(map[string]any) {
				found = unchecked(one.(map[string]any), found)
			}
		case name == "anyOf":
			for _, one := range v.([]any) {
				found = unchecked(one.(map[string]any), found)
			}
		case !slices.Contains(checked, name) && !slices.Contains(remarks, name):
			found = append(found, name)
		default:
			if one, ok := v.(map[string]any); ok {
				found = unchecked(one, found)
			}
		}
	}
	return found
}
