package packtest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"mime"
	"slices"
	"strings"
	"testing"

	"github.com/heedproject/heed/sim"
)

// Golden is the answer of a golden exchange of the pack.
func Golden(t *testing.T, p sim.Pack, name string) Answer {
	t.Helper()
	return Serve(t, p, sim.World{Steps: "* /**: golden(" + name + ")"}).Get("/")
}

// Alike says in what got, which a pack made, falls short of the golden answer
// want, so that the two cannot drift apart: status, kind of document, and
// every element, attribute and member that is in want, with a value of the
// same type. The values of those called same must be equal.
func Alike(got, want Answer, same ...string) string {
	if got.Status != want.Status {
		return fmt.Sprintf("status %d, want %d", got.Status, want.Status)
	}
	kind := kindOf(want)
	if k := kindOf(got); k != kind {
		return fmt.Sprintf("a document of the kind %q, want %q", k, kind)
	}
	if (got.Body == "") != (want.Body == "") {
		return fmt.Sprintf("%d bytes of body, want %d", len(got.Body), len(want.Body))
	}
	have, err1 := leaves(kind, got.Body)
	must, err2 := leaves(kind, want.Body)
	if err1 != nil || err2 != nil {
		return fmt.Sprintf("bodies that cannot be read: %v, %v", err1, err2)
	}
	for path, v := range must {
		h, ok := have[path]
		name := path[strings.LastIndexByte(path, '/')+1:]
		switch {
		case !ok:
			return fmt.Sprintf("no %s", path)
		case h.kind != v.kind:
			return fmt.Sprintf("%s is %s, want %s", path, h.kind, v.kind)
		case slices.Contains(same, name) && h.text != v.text:
			return fmt.Sprintf("%s is %q, want %q", path, h.text, v.text)
		}
	}
	return ""
}

// kindOf is xml, json, or the media type without its parameters.
func kindOf(a Answer) string {
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return ""
	case strings.HasSuffix(media, "xml"):
		return "xml"
	case strings.HasSuffix(media, "json"):
		return "json"
	}
	return media
}

// leaf is one value of a document.
type leaf struct{ kind, text string }

// leaves are the values of a document by their paths. Those of a list have one
// path; the first counts.
func leaves(kind, body string) (map[string]leaf, error) {
	all := map[string]leaf{}
	switch {
	case body == "":
	case kind == "json":
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			return nil, err
		}
		flatten(all, "", v)
	case kind == "xml":
		return all, elements(all, body)
	}
	return all, nil
}

func flatten(all map[string]leaf, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			flatten(all, path+"/"+name, inner)
		}
	case []any:
		all[path+"/"] = leaf{kind: "a list"}
		for _, inner := range v {
			flatten(all, path+"/*", inner)
		}
	default:
		if _, ok := all[path]; !ok {
			all[path] = leaf{fmt.Sprintf("%T", v), fmt.Sprint(v)}
		}
	}
}

// elements notes elements and attributes by their local names.
func elements(all map[string]leaf, body string) error {
	d := xml.NewDecoder(strings.NewReader(body))
	path := ""
	note := func(at, text string) {
		if _, ok := all[at]; !ok {
			all[at] = leaf{"a text", text}
		}
	}
	for {
		token, err := d.Token()
		if token == nil {
			if path == "" {
				return nil
			}
			return err
		}
		switch e := token.(type) {
		case xml.StartElement:
			path += "/" + e.Name.Local
			for _, a := range e.Attr {
				if a.Name.Space != "xmlns" && a.Name.Local != "xmlns" {
					note(path+"/"+a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
			note(path, "")
			path = path[:strings.LastIndexByte(path, '/')]
		case xml.CharData:
			if text := strings.TrimSpace(string(e)); text != "" {
				note(path, text)
			}
		}
	}
}
