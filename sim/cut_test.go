package sim

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"
)

func TestAnXMLAnswerIsCutBetweenElementsOfOneName(t *testing.T) {
	for doc, want := range map[string]string{
		"<a><b>1</b><b>2</b><b>3</b><b>4</b></a>":                "<a><b>1</b><b>2</b></a>",
		"<?xml version=\"1.0\"?>\n<a n='2'>\n <b/>\n <b/>\n</a>": "<?xml version=\"1.0\"?>\n<a n='2'>\n <b/>\n</a>",
		"<a><h/><b><c/><c/><c/></b><b><c/></b></a>":              "<a><h/><b><c/></b><b><c/></b></a>",
		"<f:a xmlns:f='u'><f:m><x/></f:m><f:m><y/></f:m></f:a>":  "<f:a xmlns:f='u'><f:m><x/></f:m></f:a>",
		"<a><b/><c/><b/></a>":                                    "<a><b/></a>",
		"<a><b><c/></b></a>":                                     "<a></a>",
		"<a>text</a>":                                            "",
		"<a><b/><b/>":                                            "",
		"{}":                                                     "",
	} {
		got, ok := shortenXML([]byte(doc))
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s: got %q", doc, got)
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("<a><b>1</b><b>2</b></a>")
	f.Add(`{"a":[1,[2,3]]}`)
	f.Fuzz(func(t *testing.T, doc string) {
		if got, ok := shortenXML([]byte(doc)); ok {
			var v any
			if err := xml.Unmarshal(got, &v); err != nil && !strings.Contains(err.Error(), "unknown type") || len(got) >= len(doc) {
				t.Errorf("%q became %q: %v", doc, got, err)
			}
		}
		if got, ok := shorten([]byte(doc)); ok && (len(got) >= len(doc) || !json.Valid(got)) {
			t.Errorf("%q became %q", doc, got)
		}
	})
}

func TestAJSONAnswerIsCutBetweenItsPartsAndStillParses(t *testing.T) {
	for doc, want := range map[string]string{
		`{"n":3,"all":[1,2,3,4]}`:          `{"n":3,"all":[1,2]}`,
		`{"id":"7","title":"T","by":"A"}`:  `{"id":"7"}`,
		`{"id": 7, "of": {"a":1,"b":[2]}}`: `{"id": 7}`,
		`[{"a":1,"b":2}]`:                  `[{"a":1}]`,
		`[{"a":1}]`:                        `[{}]`,
		`[7]`:                              `[]`,
		`{}`:                               "",
		`7`:                                "",
		`"a, b"`:                           "",
	} {
		got, ok := shorten([]byte(doc))
		if string(got) != want || ok != (want != "") {
			t.Errorf("%s: got %s, want %s", doc, got, want)
		}
	}
}
