package config

import (
	"bytes"
	"encoding/json"
)

// Schema returns the JSON Schema (2020-12) of heed.yaml, for editors.
func Schema() []byte {
	p := &parser{config: defaults()}
	f := file{Config: p.config, defaults: newEntry(), endpoints: p}
	s := f.table().Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "heed.yaml"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return nil // maps of texts and numbers always encode
	}
	return b.Bytes()
}
