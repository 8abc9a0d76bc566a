package provider

import (
	"bytes"
	"encoding/json"
)

// Schema returns the JSON Schema (2020-12) of a profile, for editors.
func Schema() []byte {
	d := document{terms: &Terms{}}
	s := d.table().Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "a profile of heed"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil // maps of texts and numbers always encode
	}
	return b.Bytes()
}
