package queue

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const minimal = `{"heed":1,"method":"POST","endpoint":"sierra","path":"/patrons?x=1"}`

func TestAnEnvelopeSurvivesTheRoundTrip(t *testing.T) {
	c := Call{
		Facts: Facts{ID: "a", Endpoint: "sierra", Method: "POST", Tenant: "t", Priority: 0, CorrelationID: "c",
			NotBefore: time.Date(2026, 3, 1, 0, 0, 0, 5, time.UTC), Expires: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)},
		Request: Request{Path: "/p?q=1", Header: http.Header{"A": {"b", "c"}}, Body: []byte{0, 255}, Key: "k", Callback: "https://x.example/"},
	}
	text, err := json.Marshal(c.Envelope())
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseEnvelope(text)
	if err != nil {
		t.Fatal(err)
	}
	got := e.Call()
	if diff := cmp.Diff(got.Facts, c.Facts); diff != "" {
		t.Errorf("facts (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(requestHead{got.Path, got.Header, got.Key, got.Callback}, requestHead{c.Path, c.Header, c.Key, c.Callback}); diff != "" {
		t.Errorf("request (-got +want):\n%s", diff)
	}
	if diff := cmp.Diff(got.Body, c.Body); diff != "" {
		t.Errorf("body (-got +want):\n%s", diff)
	}
}

func TestAnEnvelopeWithoutPriorityHasTheMiddleOne(t *testing.T) {
	e, err := ParseEnvelope([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Call().Priority; got != DefaultPriority {
		t.Errorf("priority: got %d, want %d", got, DefaultPriority)
	}
}

func TestABadEnvelopeSaysWhatIsWrong(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"empty", ``, "ends too early"},
		{"cut", minimal[:40], "ends too early"},
		{"no JSON", `{"heed":1,,}`, "not JSON at byte 11"},
		{"two", minimal + minimal, "more follows"},
		{"no version", `{"method":"GET"}`, `write "heed": 1`},
		{"newer", strings.Replace(minimal, `"heed":1`, `"heed":2`, 1), "version 2 is not known"},
		{"misspelt", strings.Replace(minimal, `"path"`, `"pfad"`, 1), `unknown field "pfad"`},
		{"no method", strings.Replace(minimal, `"POST"`, `""`, 1), "method is missing"},
		{"no endpoint", strings.Replace(minimal, `"sierra"`, `""`, 1), "endpoint is missing"},
		{"a URL", strings.Replace(minimal, `/patrons`, `https://evil.example/`, 1), "never a URL"},
		{"priority", minimal[:len(minimal)-1] + `,"priority":10}`, "priority is 10"},
		{"a number for a word", minimal[:len(minimal)-1] + `,"tenant":12345}`, "field tenant at byte"},
		{"body", minimal[:len(minimal)-1] + `,"body":"hunter2!"}`, "base64"},
		{"time", minimal[:len(minimal)-1] + `,"not_before":"hunter2"}`, "RFC 3339"},
	} {
		_, err := ParseEnvelope([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid that says %q", tt.name, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "12345")) {
			t.Errorf("%s: the error quotes a value: %v", tt.name, err)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(minimal))
	f.Add([]byte(`{"heed":1,"method":"P","endpoint":"e","path":"/","headers":{"a":["b"]},"body":"AAE=","priority":3,"not_before":"2026-03-01T00:00:00Z"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEnvelope(text)
		if err != nil {
			return
		}
		c := e.Call()
		again, err := json.Marshal(c.Envelope())
		if err != nil {
			t.Fatalf("write what was read: %v", err)
		}
		back, err := ParseEnvelope(again)
		if err != nil {
			t.Fatalf("read what was written: %v", err)
		}
		if got, want := back.Call().Facts, c.Facts; !cmp.Equal(got, want) {
			t.Errorf("facts: got %+v, want %+v", got, want)
		}
	})
}
