package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim/drift"
)

// recordedPaths records a GET of each path with args, and returns the paths
// that were written, and the text of the recording.
func recordedPaths(t *testing.T, asked []string, args ...string) (paths []string, text string) {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"ch_abcdefghijklmnop","object":"charge"}`))
	}))
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "recording.jsonl")
	front, end := serving(t, append([]string{"record", "--upstream", upstream.URL, "--out", file, "--listen", "127.0.0.1:0"}, args...)...)
	for _, path := range asked {
		resp, err := http.Get(front + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil { // an answer is recorded when it has ended
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	end()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := drift.Read(file, strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		paths = append(paths, e.Path)
	}
	return paths, string(data)
}

func TestARecordingHasNoPartOfAPathThatMayBeAValue(t *testing.T) {
	asked := []string{"/v1/users/mueller", "/v1/charges", "/v1/charges/ch_abcdefghijklmnop", "/v1/charges/ch_qrstuvwxyzabcd"}
	for _, row := range []struct {
		name string
		args []string
		want []string
	}{
		{"with the pack", []string{"--pack", "stripe"}, []string{"/v1/{}/{}", "/v1/charges", "/v1/charges/{1:/id}", "/v1/charges/{}"}},
		{"without one", nil, []string{"/v1/users/{}", "/v1/charges", "/v1/charges/{1:/id}", "/v1/charges/{}"}},
	} {
		paths, text := recordedPaths(t, asked, row.args...)
		if diff := cmp.Diff(paths, row.want); diff != "" {
			t.Errorf("%s: -got +want:\n%s", row.name, diff)
		}
		for _, value := range []string{"mueller", "ch_", "abcdefgh"} {
			if strings.Contains(text, value) {
				t.Errorf("%s: %s is in the recording:\n%s", row.name, value, text)
			}
		}
	}
}
