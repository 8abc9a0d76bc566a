package sheet

import (
	"bytes"
	"encoding/json"
)

// JSONSchema is the JSON Schema (2020-12) of files that hold a v, for editors.
func JSONSchema(v Value, title string) []byte {
	s := v.Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil // maps of texts and numbers always encode
	}
	return b.Bytes()
}
