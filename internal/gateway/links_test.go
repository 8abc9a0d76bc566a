package gateway

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func relinked(t *testing.T, name, value string) string {
	t.Helper()
	e := endpoint(t, "https://api.test/v1")
	e.SecretQuery, e.RewriteLinks = "api_key", true
	sent, _ := url.Parse("https://api.test/v1/bibs?page=1")
	h := http.Header{name: {value}}
	newRoute(e).links(h, sent, "http://127.0.0.1:8642")
	return h.Get(name)
}

func TestLocationGoesThroughTheGateway(t *testing.T) {
	for _, c := range [][2]string{
		{"https://api.test/v1/bibs/2", "http://127.0.0.1:8642/api/bibs/2"},
		{"https://API.test:443/v1/bibs?page=2#x", "http://127.0.0.1:8642/api/bibs?page=2#x"},
		{"/v1/bibs/2", "http://127.0.0.1:8642/api/bibs/2"},
		{"bibs/2", "http://127.0.0.1:8642/api/bibs/2"},
		{"?page=2", "http://127.0.0.1:8642/api/bibs?page=2"},
		{"https://api.test/v1", "http://127.0.0.1:8642/api"},
		{"https://api.test/v1/bibs?api_key=hunter2&page=2", "http://127.0.0.1:8642/api/bibs?page=2"},
		// elsewhere: as it was
		{"https://other.test/v1/bibs", "https://other.test/v1/bibs"},
		{"http://api.test/v1/bibs", "http://api.test/v1/bibs"},
		{"https://api.test:444/v1/bibs", "https://api.test:444/v1/bibs"},
		{"https://api.test/v2/bibs", "https://api.test/v2/bibs"},
		{"https://api.test/v1extra", "https://api.test/v1extra"},
		{"https://api.test/v1/..%2fadmin", "https://api.test/v1/..%2fadmin"},
		{"https://user:pw@api.test/v1/bibs", "https://user:pw@api.test/v1/bibs"},
		{"//other.test/v1/bibs", "//other.test/v1/bibs"},
		{"mailto:a@api.test", "mailto:a@api.test"},
		{"https://api.test/%zz", "https://api.test/%zz"},
	} {
		if got := relinked(t, "Location", c[0]); got != c[1] {
			t.Errorf("%s: got %s, want %s", c[0], got, c[1])
		}
	}
}

func TestLinkTargetsGoThroughTheGateway(t *testing.T) {
	const g = "http://127.0.0.1:8642/api"
	for _, c := range [][2]string{
		{`<https://api.test/v1/bibs?page=2>; rel="next"`, `<` + g + `/bibs?page=2>; rel="next"`},
		{`<https://api.test/v1/a,b>; rel=next, <https://api.test/v1/c>;rel="last"`, `<` + g + `/a,b>; rel=next, <` + g + `/c>;rel="last"`},
		{`<https://other.test/v1/c>; rel=next,<?page=3>; title="a, <b>\" c"; rel=last`, `<https://other.test/v1/c>; rel=next,<` + g + `/bibs?page=3>; title="a, <b>\" c"; rel=last`},
		{`, , <?page=2>`, `, , <` + g + `/bibs?page=2>`},
		{`nonsense <https://api.test/v1/c>`, `nonsense <https://api.test/v1/c>`},
		{`<https://api.test/v1/c`, `<https://api.test/v1/c`},
	} {
		if diff := cmp.Diff(relinked(t, "Link", c[0]), c[1]); diff != "" {
			t.Errorf("%s (-got +want):\n%s", c[0], diff)
		}
	}
}

func FuzzMapLinksLeavesAllButTargets(f *testing.F) {
	f.Add(`<a>; rel="next", <b,c>; title="x\"y"`)
	f.Add(`,<>,`)
	f.Fuzz(func(t *testing.T, line string) {
		if got := mapLinks(line, func(s string) string { return s }); got != line {
			t.Fatalf("%q became %q", line, got)
		}
	})
}

func TestTheCredentialIsTakenOutOfLinksWhereverTheyLead(t *testing.T) {
	e := endpoint(t, "https://api.test/v1")
	e.SecretQuery = "key"
	for _, c := range [][3]string{
		{"Location", "https://other.test/x?key=s3cret", "https://other.test/x"},
		{"Location", "/x?a=1&KEY=s3cret#f", "/x?a=1#f"},
		{"Location", "/x?key=s3cret&a=1&%6bey=s3cret", "/x?a=1"},
		{"Location", "/%zz?key=s3cret;a=1", "/%zz?a=1"},
		{"Location", "/x#key=s3cret&a=1", "/x#a=1"},
		{"Content-Location", "/x?a=1&amp;key=s3cret&amp;b=2", "/x?a=1&amp;b=2"},
		{"Content-Location", "/x?monkey=1&a=key", "/x?monkey=1&a=key"},
		{"Link", `</x?key=s3cret>; rel="next", </y?a=1&key=s3cret>; rel=x`, `</x>; rel="next", </y?a=1>; rel=x`},
		{"Refresh", `1; url="/x?key=s3cret"`, `1; url="/x"`},
	} {
		h := http.Header{c[0]: {c[1]}}
		newRoute(e).links(h, nil, "")
		if got := h.Get(c[0]); got != c[2] {
			t.Errorf("%s: got %s, want %s", c[1], got, c[2])
		}
	}
}
