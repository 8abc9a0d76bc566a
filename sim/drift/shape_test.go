package drift_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim/drift"
)

func TestShapesOfBodies(t *testing.T) {
	for name, tt := range map[string]struct{ media, body, want string }{
		"values":  {"application/json", `{"a":1,"b":1.5,"c":"x","d":null,"e":true,"f":[]}`, `{"is":"object","fields":{"a":{"is":"integer"},"b":{"is":"number"},"c":{"is":"string"},"d":{"is":"null"},"e":{"is":"boolean"},"f":{"is":"list"}}}`},
		"formats": {"", `["2026-03-01T12:00:00Z","2026-03-01"]`, `{"is":"list","of":{"is":"date|date-time"}}`},
		"items":   {"", `[{"a":1},{"a":null,"b":2}]`, `{"is":"list","of":{"is":"object","fields":{"a":{"is":"integer|null"},"b":{"is":"integer","sometimes":true}}}}`},
		"keys":    {"", `{"123":1,"a@b.c":2,"x1y2":3,"name_2":4}`, `{"is":"object","fields":{"*":{"is":"integer"},"name_2":{"is":"integer"}}}`},
		"keys of the caller's own": {"", `{"metadata":{"mueller":"x","age":"y"},"labels":{},"metadatas":{"a":1}}`,
			`{"is":"object","fields":{"labels":{"is":"object"},"metadata":{"is":"object","fields":{"*":{"is":"string"}}},"metadatas":{"is":"object","fields":{"a":{"is":"integer"}}}}}`},
		"keys of the caller's own in a form": {"application/x-www-form-urlencoded", "metadata%5Bmueller%5D=x&metadata%5Bage%5D=7&expand%5B%5D=a",
			`{"is":"form","fields":{"expand[]":{"is":"string"},"metadata[*]":{"is":"digits|string"}}}`},
		"XML":                          {"text/xml", `<?xml version="1.0"?><w:a xmlns:w="u" n="1"><b/><b>x</b></w:a>`, `{"is":"element","fields":{"a":{"is":"element","fields":{"@n":{"is":"digits"},"b":{"is":"element","fields":{"#text":{"is":"string"}}}}}}}`},
		"XML with names that are data": {"text/xml", `<a x1y2="1"><u8f3a/><k7b1>x</k7b1></a>`, `{"is":"element","fields":{"a":{"is":"element","fields":{"*":{"is":"element","fields":{"#text":{"is":"string"}}},"@*":{"is":"digits"}}}}}`},
		"a text that is called a form": {"application/x-www-form-urlencoded", `Mueller`, `{"is":"text"}`},
		"an object that is called one": {"application/x-www-form-urlencoded", `{"a":1}`, `{"is":"object","fields":{"a":{"is":"integer"}}}`},
		"form":                         {"application/x-www-form-urlencoded", `a=1&b%5Bc%5D=x`, `{"is":"form","fields":{"a":{"is":"digits"},"b[c]":{"is":"string"}}}`},
		"events":                       {"text/event-stream", "event: x\ndata: {\"a\":1}\n\ndata: [DONE]\n\n", `{"is":"events","of":{"is":"object|string","fields":{"a":{"is":"integer"}}}}`},
		"HTML":                         {"text/html; charset=utf-8", `<p>x`, `{"is":"html"}`},
		"text":                         {"text/plain", `x`, `{"is":"text"}`},
		"binary":                       {"image/png", "\x89PNG", `{"is":"binary"}`},
		"empty":                        {"application/json", " ", `{"is":"empty"}`},
		"cut":                          {"application/json", `{"a":`, `{"is":"text"}`},
		"BOM":                          {"application/json", "\ufeff1", `{"is":"integer"}`},
	} {
		got, err := json.Marshal(drift.ShapeOf(tt.media, []byte(tt.body)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), tt.want); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzShapeOf(f *testing.F) {
	for _, body := range []string{`{"a":[{"b":1},{}]}`, `<a b="c"><d>e</d></a>`, "data: {}\n", "a=1&b=2"} {
		for _, media := range []string{"application/json", "text/event-stream", "application/x-www-form-urlencoded", ""} {
			f.Add(media, body)
		}
	}
	f.Fuzz(func(t *testing.T, media, body string) {
		s := drift.ShapeOf(media, []byte(body))
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if again := drift.ShapeOf(media, []byte(body)); s.Kind == "" || !strings.HasPrefix(string(text), `{"is":`) || again.Kind != s.Kind {
			t.Errorf("got %s", text)
		}
	})
}
