package config_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/heedproject/heed/provider/sheet"
)

// against checks a document by the words of JSON Schema that Schema uses.
func against(s map[string]any, n *sheet.Node, path string) []string {
	if forms, ok := s["oneOf"].([]any); ok {
		matched := 0
		for _, one := range forms {
			if len(against(one.(map[string]any), n, path)) == 0 {
				matched++
			}
		}
		if matched != 1 {
			return []string{fmt.Sprintf("%s: %d of the forms match, want 1", path, matched)}
		}
		return nil
	}
	if want, ok := s["const"]; ok {
		if n.Text != fmt.Sprint(want) {
			return []string{fmt.Sprintf("%s: is not %v", path, want)}
		}
		return nil
	}
	if !slices.Contains(types(s), typeOf(n)) && !(typeOf(n) == "integer" && slices.Contains(types(s), "number")) {
		return []string{fmt.Sprintf("%s: is %s, want %v", path, typeOf(n), types(s))}
	}
	switch n.Kind {
	case sheet.Mapping:
		return object(s, n, path)
	case sheet.Sequence:
		var bad []string
		for i, item := range n.Items {
			bad = append(bad, against(s["items"].(map[string]any), item, fmt.Sprintf("%s[%d]", path, i))...)
		}
		return bad
	}
	return scalar(s, n, path)
}

func object(s map[string]any, n *sheet.Node, path string) []string {
	var bad []string
	for _, m := range n.Members {
		if one := member(s, m.Key.Text); one != nil {
			bad = append(bad, against(one, m.Value, path+"."+m.Key.Text)...)
		} else {
			bad = append(bad, path+"."+m.Key.Text+": is not allowed")
		}
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if n.Get(name.(string)) == nil {
			bad = append(bad, fmt.Sprintf("%s.%v: is required", path, name))
		}
	}
	return bad
}

// member returns the schema of the member called name, or nil.
func member(s map[string]any, name string) map[string]any {
	if p, ok := s["properties"].(map[string]any); ok && p[name] != nil {
		return p[name].(map[string]any)
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for pattern, one := range patterns {
		if regexp.MustCompile(pattern).MatchString(name) {
			return one.(map[string]any)
		}
	}
	one, _ := s["additionalProperties"].(map[string]any)
	return one
}

func scalar(s map[string]any, n *sheet.Node, path string) []string {
	var bad []string
	if words, ok := s["enum"].([]any); ok && !slices.Contains(words, any(n.Text)) {
		bad = append(bad, fmt.Sprintf("%s: %q is none of %v", path, n.Text, words))
	}
	if pattern, ok := s["pattern"].(string); ok && typeOf(n) == "string" && !regexp.MustCompile(pattern).MatchString(n.Text) {
		bad = append(bad, fmt.Sprintf("%s: %q does not match %s", path, n.Text, pattern))
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	if low, ok := s["minimum"].(float64); ok && err == nil && v < low {
		bad = append(bad, fmt.Sprintf("%s: %v is below %v", path, v, low))
	}
	if high, ok := s["maximum"].(float64); ok && err == nil && v > high {
		bad = append(bad, fmt.Sprintf("%s: %v is above %v", path, v, high))
	}
	return bad
}

func types(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		out := make([]string, len(t))
		for i := range t {
			out[i] = t[i].(string)
		}
		return out
	}
	return nil
}

func typeOf(n *sheet.Node) string {
	switch {
	case n.Kind == sheet.Mapping:
		return "object"
	case n.Kind == sheet.Sequence:
		return "array"
	case n.IsNull():
		return "null"
	case !n.Plain:
		return "string"
	case n.Text == "true" || n.Text == "false":
		return "boolean"
	}
	if _, err := strconv.Atoi(n.Text); err == nil {
		return "integer"
	}
	if _, err := strconv.ParseFloat(n.Text, 64); err == nil {
		return "number"
	}
	return "string"
}

// keys lists the paths of all properties; a key of the user's own is a star.
func keys(s map[string]any, path string, out *[]string) {
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := sheet.Join(path, name)
		*out = append(*out, at)
		keys(properties[name].(map[string]any), at, out)
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, one := range patterns {
		keys(one.(map[string]any), path+".*", out)
	}
	if items, ok := s["items"].(map[string]any); ok {
		keys(items, path+"[]", out)
	}
	forms, _ := s["oneOf"].([]any)
	for _, form := range forms {
		keys(form.(map[string]any), path, out)
	}
}

// free are the mappings whose keys are the user's own.
var free = regexp.MustCompile(`(^endpoints|\.header|\.query|\.vars)$`)

// written lists the paths of all keys of a document in the same form.
func written(n *sheet.Node, path string, out *[]string) {
	for _, item := range n.Items {
		written(item, path+"[]", out)
	}
	for _, m := range n.Members {
		at := path + ".*"
		if !free.MatchString(path) {
			at = sheet.Join(path, m.Key.Text)
			*out = append(*out, at)
		}
		written(m.Value, at, out)
	}
}
