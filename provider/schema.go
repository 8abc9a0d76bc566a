package provider

import "github.com/heedproject/heed/provider/sheet"

// Schema returns the JSON Schema (2020-12) of a profile, for editors.
func Schema() []byte {
	d := document{terms: &Terms{}}
	return sheet.JSONSchema(d.table(), "a profile of heed")
}
