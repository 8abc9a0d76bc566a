package gateway

import (
	"net/http/httptest"
	"testing"
)

func TestTheAdminPortSaysInProblemsWhatItDoesNotHave(t *testing.T) {
	g := New(Settings{})
	for _, c := range []struct {
		method, target string
		status         int
		name, allow    string
	}{
		{"GET", "/nope", 404, "unknown-path", ""},
		{"GET", "/metrics", 404, "unknown-path", ""}, // none are kept
		{"OPTIONS", "*", 404, "unknown-path", ""},
		{"POST", "/_heed/gates", 405, "wrong-method", "GET, HEAD"},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		r.Host, r.RequestURI, r.URL.Path = "localhost", c.target, c.target
		w := httptest.NewRecorder()
		g.Admin().ServeHTTP(w, r)
		a := answered{w.Result(), w.Body.String()}
		wantProblem(t, a, c.status, c.name)
		if got := a.Header.Get("Allow"); got != c.allow {
			t.Errorf("%s %s allows %q, want %q", c.method, c.target, got, c.allow)
		}
	}
}
