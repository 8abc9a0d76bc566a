package gateway

import (
	"net/url"
	"strings"
	"testing"
)

func endpoint(t testing.TB, raw string) *Endpoint {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &Endpoint{Name: "api", URL: u}
}

func TestPathIsMappedBelowTheBase(t *testing.T) {
	for _, c := range []struct{ url, rest, want string }{
		{"http://h", "", "/"},
		{"http://h", "/", "/"},
		{"http://h/", "", "/"},
		{"http://h/v1", "", "/v1"},
		{"http://h/v1/", "", "/v1/"},
		{"http://h/v1", "/", "/v1/"},
		{"http://h/v1", "/a/b", "/v1/a/b"},
		{"http://h/v1/", "/a/b/", "/v1/a/b/"},
		{"http://h/v1", "/a//b", "/v1/a//b"},
		{"http://h/v1", "//evil.test/a", "/v1/evil.test/a"},
		{"http://h", "///evil.test/a", "/evil.test/a"},
		{"http://h", "/a/..//evil.test", "/evil.test"},
		{"http://h/v1", "/a/./b", "/v1/a/b"},
		{"http://h/v1", "/a/../b", "/v1/b"},
		{"http://h/v1", "/a/%2e%2E/b", "/v1/b"},
		{"http://h/v1", "/a/%2e/b", "/v1/a/b"},
		{"http://h/v1", "/a/..", "/v1/"},
		{"http://h/v1", "/group%2Fproject", "/v1/group%2Fproject"},
		{"http://h/v1", "/caf%C3%A9", "/v1/caf%C3%A9"},
		{"http://h/v1", "/a%20b;v=1", "/v1/a%20b;v=1"},
		{"http://h/v1", "/..a/b..", "/v1/..a/b.."},
		{"http://h/v1", "/100%25", "/v1/100%25"},
		{"http://h/sp%20ace", "/a", "/sp%20ace/a"},
	} {
		u, wrong := newRoute(endpoint(t, c.url)).target(c.rest, "q=1")
		if wrong != "" {
			t.Errorf("%s + %s: %s", c.url, c.rest, wrong)
			continue
		}
		if got := u.EscapedPath(); got != c.want {
			t.Errorf("%s + %s: got %s, want %s", c.url, c.rest, got, c.want)
		}
		if u.RawQuery != "q=1" {
			t.Errorf("%s + %s: the query became %q", c.url, c.rest, u.RawQuery)
		}
	}
}

func TestPathThatCouldBeReadInTwoWaysIsRefused(t *testing.T) {
	for _, c := range []struct{ rest, want string }{
		{"/..", pathClimbs},
		{"/../b", pathClimbs},
		{"/a/../../b", pathClimbs},
		{"/%2e%2e/b", pathClimbs},
		{"/.%2e", pathClimbs},
		{"/..%2fadmin", pathHidden},
		{"/a%2f..%2f..%2fadmin", pathHidden},
		{"/%252e%252e/admin", pathHidden},
		{"/%25252e%25252e/admin", pathHidden},
		{"/..;/admin", pathHidden},
		{"/..;x=1/admin", pathHidden},
		{`/a\b`, pathBackslash},
		{"/..%5cadmin", pathBackslash},
		{"/a%00b", pathControl},
		{"/a%0d%0aX:1", pathControl},
		{"/a%7f", pathControl},
		{"/a%250ab", pathControl},
		{"/a%zz", pathEncoding},
	} {
		u, wrong := newRoute(endpoint(t, "http://h/v1")).target(c.rest, "")
		if wrong != c.want {
			t.Errorf("%s: got %v %q, want %q", c.rest, u, wrong, c.want)
		}
	}
}

func TestForcedQueryReplacesTheCallersWhateverItsCase(t *testing.T) {
	e := endpoint(t, "http://h")
	e.ForceQuery = map[string]string{"EXCEPTIONS": "XML"}
	u, _ := newRoute(e).target("/wms", "exceptions=in%69mage&&layers=a,b&Exceptions=x&%45XCEPTIONS=y")
	if got, want := u.RawQuery, "layers=a,b&EXCEPTIONS=XML"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzTargetStaysOnTheEndpoint(f *testing.F) {
	for _, s := range []string{"", "/", "//evil.test/x", "/a/../..", "/%2e%2e%2f", "/..;/x", "/a%2f%2e%2e", `\\evil`, "/@evil.test", "/a?b#c", "/%", "/:80"} {
		f.Add(s, "a=1")
	}
	e := endpoint(f, "https://api.example.test:8443/base/v1")
	rt := newRoute(e)
	f.Fuzz(func(t *testing.T, rest, query string) {
		if rest != "" && rest[0] != '/' {
			return // split does not make such a rest
		}
		u, wrong := rt.target(rest, query)
		if wrong != "" {
			return
		}
		if u.Scheme != "https" || u.Host != "api.example.test:8443" || u.User != nil || u.Opaque != "" {
			t.Fatalf("%q: left the endpoint: %v", rest, u)
		}
		for _, p := range []string{u.Path, u.EscapedPath(), u.RequestURI()} {
			if p != "/base/v1" && !strings.HasPrefix(p, "/base/v1/") && !strings.HasPrefix(p, "/base/v1?") {
				t.Fatalf("%q: left the base: %q", rest, p)
			}
			path, _, _ := strings.Cut(p, "?")
			for s := range strings.SplitSeq(path, "/") {
				if s == "." || s == ".." {
					t.Fatalf("%q: a dot segment is left in %q", rest, p)
				}
			}
		}
		if again, err := url.Parse("https://api.example.test:8443" + u.EscapedPath()); err == nil && again.Host != u.Host {
			t.Fatalf("%q: written out it is %v", rest, again)
		}
	})
}

func FuzzRequestPath(f *testing.F) {
	f.Add("/api/x")
	f.Add("//evil/api")
	f.Add("/api//evil")
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil {
			return
		}
		name, rest, ok := split(u.EscapedPath())
		if ok && (strings.Contains(name, "/") || rest != "" && rest[0] != '/') {
			t.Fatalf("%q: split into %q and %q", raw, name, rest)
		}
	})
}
