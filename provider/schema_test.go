package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heedproject/heed/provider"
	"github.com/heedproject/heed/provider/golden"
	"github.com/heedproject/heed/provider/sheet"
)

// schema is as much of JSON Schema (2020-12) as the schemas of heed use.
type schema struct {
	Type                 any                `json:"type"`
	Enum                 []any              `json:"enum"`
	Pattern              string             `json:"pattern"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	Items                *schema            `json:"items"`
	OneOf                []*schema          `json:"oneOf"`
	Properties           map[string]*schema `json:"properties"`
	PatternProperties    map[string]*schema `json:"patternProperties"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	Required             []string           `json:"required"`

	Schema, Title, Description string
	Examples                   []string
}

// printed is the schema that heed provider schema prints.
func printed(t *testing.T) *schema {
	t.Helper()
	s := new(schema)
	var raw map[string]any
	if err := json.Unmarshal(provider.Schema(), &raw); err != nil {
		t.Fatal(err)
	}
	delete(raw, "$schema")
	text, err := json.Marshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // a word that this check does not know would be passed over
	if err := d.Decode(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// refuses tells what of v, which stands at path, the schema does not take.
func (s *schema) refuses(v any, path string) []string {
	if !s.hasType(v) {
		return []string{fmt.Sprintf("%s: %v is no %v", path, v, s.Type)}
	}
	if s.Enum != nil && !slices.Contains(s.Enum, v) {
		return []string{fmt.Sprintf("%s: %v is none of %v", path, v, s.Enum)}
	}
	if s.OneOf != nil {
		fits := 0
		for _, one := range s.OneOf {
			if len(one.refuses(v, path)) == 0 {
				fits++
			}
		}
		if fits != 1 {
			return []string{fmt.Sprintf("%s: %v fits %d forms", path, v, fits)}
		}
	}
	switch v := v.(type) {
	case string:
		if s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(v) {
			return []string{fmt.Sprintf("%s: %q does not match %s", path, v, s.Pattern)}
		}
	case float64:
		if s.Minimum != nil && v < *s.Minimum || s.Maximum != nil && v > *s.Maximum {
			return []string{fmt.Sprintf("%s: %v is out of range", path, v)}
		}
	case []any:
		var all []string
		for i, item := range v {
			if s.Items != nil {
				all = append(all, s.Items.refuses(item, fmt.Sprintf("%s[%d]", path, i))...)
			}
		}
		return all
	case map[string]any:
		return s.refusesMembers(v, path)
	}
	return nil
}

func (s *schema) hasType(v any) bool {
	var is, also any
	switch v := v.(type) {
	case string:
		is = "string"
	case bool:
		is = "boolean"
	case float64:
		if is = "number"; v == float64(int64(v)) {
			also = "integer"
		}
	case []any:
		is = "array"
	case map[string]any:
		is = "object"
	case nil:
		is = "null"
	}
	switch t := s.Type.(type) {
	case nil:
		return true
	case string:
		return t == is || t == also
	case []any:
		return slices.Contains(t, is) || also != nil && slices.Contains(t, also)
	}
	return false
}

func (s *schema) refusesMembers(m map[string]any, path string) (all []string) {
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			all = append(all, path+": "+name+" is missing")
		}
	}
	for name, v := range m {
		of := s.Properties[name]
		for pattern, one := range s.PatternProperties {
			if of == nil && regexp.MustCompile(pattern).MatchString(name) {
				of = one
			}
		}
		if of == nil && len(s.AdditionalProperties) > 0 && s.AdditionalProperties[0] == '{' {
			of = new(schema)
			if err := json.Unmarshal(s.AdditionalProperties, of); err != nil {
				return []string{path + ": " + err.Error()}
			}
		}
		switch {
		case of != nil:
			all = append(all, of.refuses(v, path+"."+name)...)
		case string(s.AdditionalProperties) == "false":
			all = append(all, path+": the key "+name+" is not known")
		}
	}
	return all
}

// values is a document as an editor sees it.
func values(t *testing.T, text []byte) any {
	t.Helper()
	n, problems := sheet.ReadYAML("x", text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return valueOf(n)
}

// valueOf is n with the types that YAML gives to what stands without quotes.
func valueOf(n *sheet.Node) any {
	switch n.Kind {
	case sheet.Mapping:
		m := map[string]any{}
		for _, one := range n.Members {
			m[one.Key.Text] = valueOf(one.Value)
		}
		return m
	case sheet.Sequence:
		all := make([]any, len(n.Items))
		for i, item := range n.Items {
			all[i] = valueOf(item)
		}
		return all
	}
	number, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case n.IsNull():
		return nil
	case n.Plain && (n.Text == "true" || n.Text == "false"):
		return n.Text == "true"
	case n.Plain && err == nil:
		return number
	}
	return n.Text
}

func TestThePrintedSchemaTakesWhatHeedTakes(t *testing.T) {
	s := printed(t)
	for _, name := range provider.Names() {
		for _, at := range []struct {
			file  string
			read  func(string) ([]byte, error)
			whole bool
		}{{"profiles/" + name + ".yaml", os.ReadFile, true}, {name + ".yaml", golden.Files.ReadFile, false}} {
			text, err := at.read(at.file)
			if err != nil {
				t.Fatal(err)
			}
			of := s
			if !at.whole {
				of = &schema{Properties: map[string]*schema{"exchanges": s.Properties["exchanges"]}}
			}
			for _, why := range of.refuses(values(t, text), at.file) {
				t.Errorf("the schema refuses what heed takes: %s", why)
			}
		}
	}
	_, every := whole(t)
	for name, text := range map[string][]byte{
		"whole.yaml": every,
		"bare.yaml":  []byte("name: x\ntitle: true\nrules: [{id: 7, when: {status: [429], header: {X-A: true}}, then: {class: throttled, executed: no}}]\n"),
	} {
		if _, problems := provider.Read(name, text); len(problems) > 0 {
			t.Error(problems)
		}
		for _, why := range s.refuses(values(t, text), name) {
			t.Errorf("the schema refuses what heed takes: %s", why)
		}
	}
}

func TestThePrintedSchemaRefusesWhatHeedRefuses(t *testing.T) {
	s := printed(t)
	for text, want := range map[string]string{
		"title: x\n": ": name is missing",
		"name: x\ntitle: x\npaging: [{kind: cursor, end: [true]}]\n":                      ".paging[0].end[0]: true is none of",
		"name: x\ntitle: x\npaging: [{kind: book}]\n":                                     ".paging[0].kind: book is none of",
		"name: x\ntitle: x\nbuckets: [{id: a, kind: spacing, window: 1}]\n":               ".buckets[0].window: 1 is no string",
		"name: x\ntitle: x\nrules: [{id: a, when: {status: [6oo]}, then: {class: ok}}]\n": `.rules[0].when.status[0]: "6oo" does not match`,
		"name: x\ntitle: x\nrule: []\n":                                                   ": the key rule is not known",
	} {
		if _, problems := provider.Read("x.yaml", []byte(text)); len(problems) == 0 {
			t.Errorf("heed takes %q", text)
		}
		if got := s.refuses(values(t, []byte(text)), ""); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
