package provider_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/provider"
)

// read parses HTTP text that is sound.
func read(t *testing.T, text string) *provider.Pasted {
	t.Helper()
	x, err := provider.ParseHTTP([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestPastedExchangesAreReadAsTheyWereMeant(t *testing.T) {
	for _, row := range []struct {
		name, text         string
		method, path, body string
		status, notes, cut int
	}{
		{"bare line ends", "GET /a HTTP/1.1\n\nHTTP/1.1 200 OK\n\nhello\n", "GET", "/a", "hello", 200, 0, -1},
		{"line ends of the wire", "GET /a HTTP/1.1\r\nHost: h\r\n\r\nHTTP/1.1 200 OK\r\nX: y\r\n\r\nhello", "GET", "/a", "hello", 200, 0, -1},
		{"no version", "DELETE https://h.example.org/a?b=c\n\nHTTP/2 204\n", "DELETE", "/a?b=c", "", 204, 0, -1},
		{"a host alone", "GET https://h.example.org HTTP/2\n\nHTTP/2 204\n", "GET", "/", "", 204, 0, -1},
		{"an answer alone", "\n\nHTTP/1.1 503\n\ndown", "GET", "/", "down", 503, 0, -1},
		{"a body that names an answer", "HTTP/1.1 200 OK\n\nsay HTTP/1.1 500 x\n", "GET", "/", "say HTTP/1.1 500 x", 200, 0, -1},
		{"an answer before the answer", "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\n\nx", "GET", "/", "x", 200, 0, -1},
		{"an end of line from the editor", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi\n", "GET", "/", "hi", 200, 0, -1},
		{"less than promised", "HTTP/1.1 200 OK\nContent-Length: 9\n\nhi", "GET", "/", "hi\x00\x00\x00\x00\x00\x00\x00", 200, 1, 2},
		{"more than promised", "HTTP/1.1 200 OK\nContent-Length: 1\n\nhi", "GET", "/", "hi", 200, 1, -1},
		{"nothing to a HEAD", "HEAD /a\n\nHTTP/1.1 200 OK\nContent-Length: 9\n\n", "HEAD", "/a", "", 200, 0, -1},
		{"chunks", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\r\nhi\r\n0\r\n\r\n", "GET", "/", "hi", 200, 0, -1},
		{"chunks that a tool has joined", "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n{}", "GET", "/", "{}", 200, 0, -1},
		{"a redirect on the way", "HTTP/1.1 301 Moved\nLocation: /b\nContent-Length: 9\n\nHTTP/1.1 503\n\ndown", "GET", "/", "down", 503, 1, -1},
		{"two redirects, one with its page", "HTTP/1.1 302 Found\n\n<p>there\nHTTP/1.1 308 X\n\nHTTP/2 429\n\nx", "GET", "/", "x", 429, 2, -1},
		{"a proxy that opens the way", "HTTP/1.1 200 Connection established\n\nHTTP/2 429\n\nx", "GET", "/", "x", 429, 1, -1},
		{"a challenge that was answered", "HTTP/1.1 401 Unauthorized\nContent-Length: 9\n\nHTTP/1.1 200\n\nx", "GET", "/", "x", 200, 1, -1},
		{"HTTP text that is the body", "HTTP/1.1 200 OK\nContent-Type: message/http\n\nHTTP/1.1 500 x\n", "GET", "/", "HTTP/1.1 500 x", 200, 0, -1},
		{"a coding that a tool has undone", "HTTP/1.1 403 X\nContent-Encoding: br\n\n{\"a\":\"ü\"}\n", "GET", "/", "{\"a\":\"ü\"}", 403, 1, -1},
		{"a coding that nobody here reads", "HTTP/1.1 403 X\nContent-Encoding: br\n\n\x8b\x03\x80", "GET", "/", "\x8b\x03\x80", 403, 1, -1},
		{"a length that is none", "HTTP/1.1 200 OK\nContent-Length: many\n\n{}", "GET", "/", "{}", 200, 0, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := read(t, row.text)
			got := []any{x.Request.Method, x.Request.Path, string(x.Response.Body), x.Response.Status, len(x.Notes), x.Response.Cut}
			if diff := cmp.Diff(got, []any{row.method, row.path, row.body, row.status, row.notes, row.cut}); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestACompressedBodyIsTakenApart(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(`{"a":1}`))
	_ = z.Close()
	x := read(t, "HTTP/1.1 200 OK\nContent-Encoding: gzip\n\n"+b.String())
	if got := string(x.Response.Body); got != `{"a":1}` || !x.Response.Gzip {
		t.Errorf("got %q, compressed %t", got, x.Response.Gzip)
	}
}

func TestSeveralLinesOfAHeaderAreKept(t *testing.T) {
	x := read(t, "HTTP/1.1 429\nretry-after: 1\nRetry-After:  9\n\n")
	if diff := cmp.Diff(x.Response.Header, http.Header{"Retry-After": {"1", "9"}}); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

// FuzzExplain: whatever is pasted, it is explained, and what is told to have
// decided is what held.
func FuzzExplain(f *testing.F) {
	for _, s := range []string{
		"GET /a HTTP/1.1\n\nHTTP/1.1 429 Too Many\nRetry-After: 1\n\n{\"error\":{\"message\":\"x\"}}",
		"HTTP/2 200\ncontent-type: application/json\ncontent-length: 99\n\n[", "HTTP/1.1 100\n\nHTTP/1.1 200\nContent-Encoding: gzip\n\n\x1f\x8b",
		"HTTP/1.1 301\n\nHTTP/1.1 503\nContent-Encoding: deflate\n\n\x78\x9c\x03", "HTTP/1.1 403\nContent-Encoding: br\n\n\x8b",
		"HTTP/1.1 500\nTransfer-Encoding: chunked\n\n5\r\nhe", "x", "HTTP/1.1 200\n:\n", "POST http://a\n\nHTTP/1.1 200\nContent-Length: 9999999999999\n\n",
	} {
		f.Add([]byte(s))
	}
	p, err := provider.Get("sierra")
	if err != nil {
		f.Fatal(err)
	}
	j, err := p.Judge()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := provider.ParseHTTP(text)
		if err != nil {
			return
		}
		o, why := j.Explain(&x.Exchange)
		if o.Wait < 0 || (o.Wait > 0) != (o.Source != "") {
			t.Errorf("got a wait of %v by %q", o.Wait, o.Source)
		}
		if held := slices.ContainsFunc(why.Steps, func(s classify.Step) bool { return s.Held && s.Rule == o.Verdict.Rule }); o.Ruled != held {
			t.Errorf("rule %s decided %t and held %t", o.Verdict.Rule, o.Ruled, held)
		}
	})
}
