package config

import "github.com/heedproject/heed/provider/sheet"

// Schema returns the JSON Schema (2020-12) of heed.yaml, for editors.
func Schema() []byte {
	p := &parser{config: defaults()}
	f := file{Config: p.config, defaults: newEntry(), endpoints: p}
	return sheet.JSONSchema(f.table(), "heed.yaml")
}
