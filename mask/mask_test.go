package mask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTemplate(t *testing.T) {
	for path, want := range map[string]string{
		"":                                 "",
		"/":                                "/",
		"/iii/sierra-api/v6/bibs/":         "/iii/sierra-api/v6/bibs/",
		"/iii/sierra-api/v6/bibs/1234567":  "/iii/sierra-api/v6/bibs/{id}",
		"/record/.b1234567a":               "/record/{id}",
		"/record/b1234567":                 "/record/{id}",
		"/v1/v1.1/v3.0.1":                  "/v1/v1.1/v3.0.1",
		"/v1234567":                        "/{id}",
		"/v":                               "/v",
		"/users/ann@example.org":           "/users/{id}",
		"/users/ann%40example.org":         "/users/{id}",
		"/a%20b/c":                         "/{id}/c",
		"/item/8e03978e-40d5-43e8-bc93-00": "/item/{id}",
		"/deadbeefdeadbeef/x":              "/{id}/x",
		"/t/xKqPzWvNtRbYcLm":               "/t/{id}",
		"/geoserver/wfs":                   "/geoserver/wfs",
		"/getFeatureInfo/DescribeFeature":  "/getFeatureInfo/DescribeFeature",
		"/oauth2/token":                    "/oauth2/token",
		"/$batch":                          "/$batch",
		"/v1/documents:runQuery":           "/v1/documents:runQuery",
		"/Users('ann')":                    "/{id}",
		"/app;jsessionid=AF":               "/{id}",
		"/a1":                              "/{id}",
		"/report.json":                     "/report.json",
		"/é":                               "/{id}",
		"/a//b/":                           "/a//b/",
		"/a?token=x":                       "/a",
		"/a/7#frag":                        "/a/{id}",
		"/{id}":                            "/{id}",
		"7":                                "{id}",
		"7/":                               "{id}/",
		strings.Repeat("/a", 18):           strings.Repeat("/a", 16) + "/…",
		strings.Repeat("/7", 18):           strings.Repeat("/{id}", 16) + "/…",
		"/" + strings.Repeat("ab-", 20):    "/{id}",
		"/" + strings.Repeat("a", 27):      "/{id}",
	} {
		if got := Template(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestPlainPathIsNotCopied(t *testing.T) {
	if got := testing.AllocsPerRun(100, func() { Template("/iii/sierra-api/v6/bibs/marc") }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func TestTemplateIsStable(t *testing.T) {
	for _, path := range []string{"/a/7/b", strings.Repeat("/7", 30), "/x@y"} {
		if once := Template(path); Template(once) != once && !strings.HasSuffix(once, "…") {
			t.Errorf("%s: got %s the second time, want %s", path, Template(once), once)
		}
	}
}

// printed writes v in every way that a program may.
func printed(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%20s", "%-20s", "%T", "%.3s", "%U", "%c"} {
		fmt.Fprintf(&b, verb+"\n", v)
		fmt.Fprintf(&b, verb+"\n", struct{ V any }{v})
	}
	fmt.Fprintln(&b, v)
	j, err := json.Marshal(map[string]any{"v": v})
	if err != nil {
		t.Fatal(err)
	}
	b.Write(j)
	for _, h := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
		slog.New(h).LogAttrs(t.Context(), slog.LevelInfo, "x", slog.Any("v", v))
	}
	return b.String()
}

func TestSecretIsNeverPrinted(t *testing.T) {
	got := printed(t, Secret("hunter"))
	for _, leak := range []string{"hunter", fmt.Sprintf("%x", "hunter"), fmt.Sprintf("%X", "hunter"), "hun"} {
		if strings.Contains(got, leak) {
			t.Errorf("found %q in:\n%s", leak, got)
		}
	}
}

func TestEmptySecretStaysEmpty(t *testing.T) {
	if got := fmt.Sprintf("<%v|%s|%q>", Secret(""), Secret(""), Secret("")); got != `<||"">` {
		t.Errorf(`got %s, want <||"">`, got)
	}
}

func TestPathPrintsItsTemplate(t *testing.T) {
	got := printed(t, Path("/patrons/1234567?pin=secretpin"))
	if strings.Contains(got, "1234567") || strings.Contains(got, "secretpin") {
		t.Errorf("found the identifier in:\n%s", got)
	}
	if s := fmt.Sprintf("%s %q %#v", Path("/a/7"), Path("/a/7"), Path("/a/7")); s != `/a/{id} "/a/{id}" "/a/{id}"` {
		t.Errorf("got %s", s)
	}
}

func TestURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://ann:pw@api.example:8443/v6/bibs/12?key=x#y": "https://api.example:8443/v6/bibs/{id}",
		"http://[::1]:80":             "http://[::1]:80",
		"/v6/bibs/12?key=x":           "/v6/bibs/{id}",
		"mailto:ann@example.org":      "mailto:[masked]",
		"//ann@example.org/a%2Fb":     "//example.org/{id}",
		"http://a%3Cb/":               "http://[masked]/",
		"?token=x":                    "",
		"https://example.org/a b?c#d": "https://example.org/{id}",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			u = &url.URL{Scheme: "http", Host: "a<b", Path: "/"}
		}
		if got := URL(u); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
	if got := URL(nil); got != "" {
		t.Errorf("no URL: got %s", got)
	}
}

// Errors that net/http and its kin return, and what is told of them.
func TestErrorKeepsWhatHelps(t *testing.T) {
	opErr := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 1, 2, 3), Port: 443}, Err: errors.New("connect: connection refused")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("EOF"), "EOF"},
		{opErr, "dial tcp 10.1.2.3:443: connect: connection refused"},
		{&url.Error{Op: "Get", URL: "https://u:p@api.example.org/v6/bibs/123?key=s", Err: opErr},
			`Get "https://api.example.org/v6/bibs/{id}": dial tcp 10.1.2.3:443: connect: connection refused`},
		{fmt.Errorf("attempt 3: %w", &url.Error{Op: "Post", URL: "/x?api_key=abc", Err: context.DeadlineExceeded}),
			`attempt 3: Post "/x": context deadline exceeded`},
		{errors.New("read tcp 127.0.0.1:40112->127.0.0.1:8080: read: connection reset by peer"),
			"read tcp 127.0.0.1:40112->127.0.0.1:8080: read: connection reset by peer"},
		{errors.New("dial tcp [::1]:80: i/o timeout"), "dial tcp [::1]:80: i/o timeout"},
		{errors.New("dial tcp: lookup api2.example.org on 127.0.0.53:53: no such host"),
			"dial tcp: lookup api2.example.org on 127.0.0.53:53: no such host"},
		{errors.New("net/http: timeout awaiting response headers"), "net/http: timeout awaiting response headers"},
		{errors.New("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"),
			"context deadline exceeded (Client.Timeout exceeded while awaiting headers)"},
		{errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority"),
			"tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{errors.New("x509: certificate has expired or is not yet valid: current time 2026-07-15T02:14:00Z is after 2026-01-01T00:00:00Z"),
			"x509: certificate has expired or is not yet valid: current time 2026-07-15T02:14:00Z is after 2026-01-01T00:00:00Z"},
		{errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=5, ErrCode=NO_ERROR, debug=\"by ann\""),
			"http2: server sent GOAWAY and closed the connection; LastStreamID=5, ErrCode=NO_ERROR, debug=\"[masked]\""},
		{errors.New("stream error: stream ID 5; REFUSED_STREAM"), "stream error: stream ID 5; REFUSED_STREAM"},
		{errors.New(`unsupported protocol scheme "ftp"`), `unsupported protocol scheme "ftp"`},
		{errors.New("gave up after 1m30.5s and 12 attempts"), "gave up after 1m30.5s and 12 attempts"},
		{errors.New("one\ntwo"), "one; two"},
		{errors.New("write networks: [127.0.0.1/32] or [fd00::/8]"), "write networks: [127.0.0.1/32] or [fd00::/8]"},
	} {
		if diff := cmp.Diff(Error(c.err), c.want); diff != "" {
			t.Errorf("-got +want:\n%s", diff)
		}
	}
}

func TestErrorIsBounded(t *testing.T) {
	for _, s := range []string{strings.Repeat("word ", 1000), strings.Repeat("é", 5000), strings.Repeat("7 ", 1000), strings.Repeat("a=", 1<<20), "x " + strings.Repeat("7", 1<<20)} {
		got := Error(errors.New(s))
		if len(got) > maxError || !utf8.ValidString(got) {
			t.Errorf("got %d bytes, want at most %d of valid text", len(got), maxError)
		}
	}
}

const canary = "s3cr3t-c4nary-4711-XyZ"

// Every place in which a secret may lie.
func TestPlantedSecretsAreNeverTold(t *testing.T) {
	broken := []string{"http://ann:" + canary + " x@host:port/", "http://" + canary + ":" + canary}
	_, parseErr := url.Parse(broken[0])
	_, portErr := url.Parse(broken[1])
	u := &url.URL{Scheme: "https", User: url.UserPassword(canary, canary), Host: "api.example.org",
		Path: "/p/" + canary, RawQuery: "k=" + canary, Fragment: canary}
	told := []string{
		URL(u), Template(u.Path), Error(parseErr), Error(portErr), Error(fmt.Errorf("x: %w", parseErr)),
		Error(&url.Error{Op: "Get", URL: u.String(), Err: errors.New("bad " + canary)}),
		fmt.Sprint(Header(http.Header{
			"Authorization": {"Bearer " + canary}, "Cookie": {canary}, "Set-Cookie": {"sid=" + canary}, "X-Api-Key": {canary},
			"Location": {u.String()}, "Server": {canary}, "Retry-After": {canary}, "Ratelimit": {`"d";r=1;pk=:QUJD:`},
			"X-Ratelimit-Key": {canary}, "Content-Type": {"multipart/form-data; boundary=" + canary}, "Etag": {canary},
			"Via": {"1.1 " + canary}, "X-Ratelimit-Remaining": {"5 " + canary},
		})),
	}
	for _, format := range []string{
		"%s", "token %s", "token=%s", "Authorization: Bearer %s", "Cookie: a=b; c=%s", `{"access_token":"%s"}`, `key "%s"`,
		"Get \"https://x.example/a?b=%s\": EOF", "https://x.example/%s", "https://u:%s@x.example/", "/a/%s/b", "malformed MIME header line: %s",
		"user:%s", "(%s)", "<%s>", "'%s'", "`%s`", `"%s`, "a=%s&b=c", "Basic %s", "%s.%[1]s.%[1]s", "%%%s", "http://x y:%s@h/",
		"{\"a\":{\"b\":\"c %s\"}}", "x\n%s\n", "é%s", "%s->%[1]s", "https://%s", "https://a.example:%s/", "[%s/8]",
		"[10.0.0.1/%s]",
	} {
		told = append(told, Error(fmt.Errorf(format, canary)))
	}
	for _, s := range told {
		if low := strings.ToLower(s); strings.Contains(low, "s3cr3t") || strings.Contains(low, "c4nary") || strings.Contains(low, "4711") {
			t.Errorf("told %s", s)
		}
	}
}

func TestWordBehindTheNameOfACredentialIsMasked(t *testing.T) {
	for text, want := range map[string]string{
		"Authorization: Bearer opensesame": "Authorization: [masked]",
		"got Bearer opensesame there":      "got Bearer [masked] there",
		"password: opensesame":             "password: [masked]",
		"password=opensesame":              "password=[masked]",
		`token="opensesame"`:               `token="[masked]"`,
		`{"client_secret": "opensesame"}`:  `{"[masked]": "[masked]"}`,
		"ann:opensesame":                   "[masked]",
		"patron 21234001234567 not found":  "patron [masked] not found",
		"no such user ann@example.org":     "no such user [masked]",
	} {
		if got := Error(errors.New(text)); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestHeaderShowsWhatIsHarmless(t *testing.T) {
	got := Header(http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Content-Length": {"1234567"}, "Retry-After": {"120"},
		"Date": {"Wed, 15 Jul 2026 02:20:00 GMT"}, "X-Ratelimit-Reset": {"1784081880"}, "Ratelimit": {`"default";r=50;t=30`},
		"X-Ratelimit-Reset-Requests": {"6m0s"}, "Server": {"nginx/1.25.3"}, "Cache-Control": {"max-age=31536000"},
		"Location": {"https://u:p@a.example/x/7?k=v"}, "X-Request-Id": {"abc"}, "Empty": {""}, "Bad Name\n": {"x"},
		"Anthropic-Ratelimit-Tokens-Reset": {"2026-02-18T22:00:00Z"},
	})
	want := http.Header{
		"Content-Type": {"application/json"}, "Content-Length": {"1234567"}, "Retry-After": {"120"},
		"Date": {"Wed, 15 Jul 2026 02:20:00 GMT"}, "X-Ratelimit-Reset": {"1784081880"}, "Ratelimit": {`"default";r=50;t=30`},
		"X-Ratelimit-Reset-Requests": {"6m0s"}, "Server": {"nginx/1.25.3"}, "Cache-Control": {"max-age=31536000"},
		"Location": {"https://a.example/x/{id}"}, "X-Request-Id": {"[masked]"}, "Empty": {""}, "[masked]": {"[masked]"},
		"Anthropic-Ratelimit-Tokens-Reset": {"2026-02-18T22:00:00Z"},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

func TestFingerprintTellsSecretsApart(t *testing.T) {
	a, b := Fingerprint("a"), Fingerprint("b")
	if a == b || a != Fingerprint("a") || len(a) != 8 {
		t.Errorf("got %s and %s, want eight digits that differ", a, b)
	}
	if got := Fingerprint(""); got != "" {
		t.Errorf("no secret: got %s, want nothing", got)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"/v6/bibs/1234567", "/a?b", "/{id}", "//", "/%2F", strings.Repeat("/abcdefghijklmnopqrstuvwxyz1", 3)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := Template(path)
		for seg := range strings.SplitSeq(path, "/") {
			if len(seg) > 24 && strings.ContainsAny(seg, "0123456789") && strings.Contains(got, seg) {
				t.Errorf("%q: the segment %q is told", path, seg)
			}
		}
		for seg := range strings.SplitSeq(got, "/") {
			if strings.ContainsAny(seg, "0123456789") && !isVersion(seg) && !spoken[seg] {
				t.Errorf("%q: got the segment %q", path, seg)
			}
		}
	})
}

func FuzzError(f *testing.F) {
	for _, s := range []string{`Get "http://a:b@c/d?e": EOF`, "token=", `"`, "://", "Bearer ", "cookie: ", "a=b=c", "1.2.3.4:5->6"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const planted = "Zq81Xw72Kd63"
		got := Error(errors.New(before + " " + planted + " " + after))
		if strings.Contains(got, planted) || len(got) > maxError || strings.Contains(got, "\n") {
			t.Errorf("got %q", got)
		}
		if bytes.Contains([]byte(Error(errors.New(before+"?x="+planted))), []byte(planted)) {
			t.Errorf("a query is told of %q", before)
		}
	})
}

func ExampleTemplate() {
	fmt.Println(Template("/iii/sierra-api/v6/patrons/1234567/checkouts?fields=barcode"))
	// Output: /iii/sierra-api/v6/patrons/{id}/checkouts
}

func ExampleSecret() {
	key := Secret("opensesame")
	fmt.Printf("%v %q %x\n", key, key, key)
	// Output: [secret] "[secret]" [secret]
}
