package main

import (
	"strings"
	"testing"
)

func TestABodyIsSaidToBeJSONOnlyWhereItIs(t *testing.T) {
	long := strings.Repeat(`{"a": [1, "two", {"b": null}]}, `, 4000) // more than is looked at
	for text, want := range map[string]string{
		`{"a": 1}`:                             "application/json",
		` [1, 2] ` + "\n":                      "application/json",
		`"word"`:                               "application/json",
		"a=b&c=d":                              "text/plain",
		"hello":                                "text/plain",
		`{"a": 1`:                              "text/plain",
		"{\"a\": 1}\n{\"b\"}":                  "text/plain",
		"[" + long + "1]":                      "application/json",
		"[" + long + "1":                       "application/json", // the rest is not looked at
		long:                                   "text/plain",       // documents one after the other
		strings.Repeat("x ", 40000):            "text/plain",
		`{"a": ` + long:                        "text/plain",
		`"` + strings.Repeat("x", 70000) + `"`: "application/json",
	} {
		if got := mediaType([]byte(text[:min(len(text), sniffed+1)])); got != want {
			t.Errorf("%.40q (%d bytes): got %s, want %s", text, len(text), got, want)
		}
	}
}
