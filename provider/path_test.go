package provider

import (
	"strings"
	"testing"
)

func TestAPathThatCouldExplodeIsRefused(t *testing.T) {
	for _, text := range []string{
		"$..*..*",
		"$..a..b",
		"$..[?@..a]",
		"$[?count($..*)>1]",
		"$[?count($[*])>1]",
		"$[?@[?@[?@>1]]]",
		"$['a','a']['b']",
		"$" + strings.Repeat("[*,*]", 3),
		"$" + strings.Repeat("[0,-1]", 5),
		"$" + strings.Repeat("[0:,-1]", 5),
		"$" + strings.Repeat("[?@", 100) + strings.Repeat("]", 100),
		"$" + strings.Repeat(".a", 300),
		strings.Repeat("(", 100_000),
	} {
		if _, err := compilePath(text); err == nil {
			t.Errorf("%.60s: taken", text)
		}
	}
}

func TestAPathThatProvidersNeedIsTaken(t *testing.T) {
	for _, text := range []string{
		"$.error.code", "$", "$[*].errorCode", "$..code", "$.errors[*].extensions.code", "$.error['code','type']",
		"$[?@.errorCode=='REQUEST_LIMIT_EXCEEDED'].message", `$[?match(@.text, "a..b$")].id`, "$.a[0,-1]", "$.*[*].errorList", "$[?@.errors[*]]",
	} {
		if _, err := compilePath(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
