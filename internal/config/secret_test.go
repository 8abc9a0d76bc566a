package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heedproject/heed/internal/config"
)

func TestASecretPrintsAsItsReference(t *testing.T) {
	for _, verb := range []string{"%v", "%s", "%q", "%+v", "%#v", "%x", "%d"} {
		if got := fmt.Sprintf(verb, config.Secret("env:KEY")); strings.Trim(got, `"`) != "env:KEY" {
			t.Errorf("%s: got %s, want the reference", verb, got)
		}
		if got := fmt.Sprintf(verb, config.Secret("value:canary")); strings.Contains(got, "canary") {
			t.Errorf("%s: got %s", verb, got)
		}
	}
	if got, err := json.Marshal(config.Secret("value:canary")); err != nil || strings.Contains(string(got), "canary") {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestResolve(t *testing.T) {
	env := map[string]string{"KEY": "s3", "LINE": "s3\n", "BREAK": "a\nb", "LONG": strings.Repeat("x", 1<<17)}
	files := map[string]string{"/run/key": "s3\r\n", "/run/empty": "\n"}
	for _, tt := range []struct {
		secret config.Secret
		want   string
		fails  string
	}{
		{secret: "", want: ""},
		{secret: "env:KEY", want: "s3"},
		{secret: "env:LINE", want: "s3"},
		{secret: "file:/run/key", want: "s3"},
		{secret: "value:s3", want: "s3"},
		{secret: "env:NONE", fails: "the environment variable NONE is empty or not set: set it"},
		{secret: "file:/run/empty", fails: "secret file:/run/empty is empty: write"},
		{secret: "file:/run/none", fails: "no such file"},
		{secret: "env:BREAK", fails: "line break"},
		{secret: "env:LONG", fails: "longer than 64 KiB"},
		{secret: "canary", fails: "no reference"},
	} {
		t.Run(tt.secret.String(), func(t *testing.T) {
			got, err := tt.secret.Resolve(func(name string) string { return env[name] }, func(path string) ([]byte, error) {
				if text, ok := files[path]; ok {
					return []byte(text), nil
				}
				return nil, errors.New("no such file")
			})
			if string(got) != tt.want {
				t.Errorf("got another secret than %q", tt.want)
			}
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("got error %v, want %q", err, tt.fails)
			}
		})
	}
}
