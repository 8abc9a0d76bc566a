package classify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// squeezed is text as a writer of some coding puts it out.
func squeezed(t *testing.T, text string, coder func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	z := coder(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zipped(w io.Writer) io.WriteCloser  { return gzip.NewWriter(w) }
func zlibbed(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }

func flated(w io.Writer) io.WriteCloser {
	z, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		panic(err) // the level is one
	}
	return z
}

// stored is raw deflate data that is not compressed.
func stored(w io.Writer) io.WriteCloser {
	z, err := flate.NewWriter(w, flate.NoCompression)
	if err != nil {
		panic(err) // the level is one
	}
	return z
}

func TestABodyIsReadWithoutItsCoding(t *testing.T) {
	const text = `[{"errorCode":"REQUEST_LIMIT_EXCEEDED","message":"TotalRequests Limit exceeded."}]`
	for _, row := range []struct{ name, coding, wire string }{
		{"none", "", text},
		{"identity", "Identity", text},
		{"gzip", "gzip", squeezed(t, text, zipped)},
		{"the old name of gzip", "X-GZIP", squeezed(t, text, zipped)},
		{"zlib", "deflate", squeezed(t, text, zlibbed)},
		{"raw deflate", "deflate", squeezed(t, text, flated)},
		{"raw deflate, stored", "Deflate", squeezed(t, text, stored)},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, known := Decode(http.Header{"Content-Encoding": {row.coding}}, strings.NewReader(row.wire))
			if !known {
				t.Fatal("the coding is not known")
			}
			if got, err := io.ReadAll(r); string(got) != text || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestACodingThatIsNotKnownIsNotRead(t *testing.T) {
	for name, h := range map[string]http.Header{
		"br":                     {"Content-Encoding": {"br"}},
		"two codings":            {"Content-Encoding": {"deflate, gzip"}},
		"two codings in lines":   {"Content-Encoding": {"gzip", "br"}},
		"gzip that is none":      {"Content-Encoding": {"gzip"}},
		"deflate without a byte": {"Content-Encoding": {"deflate"}},
	} {
		body := "plain text"
		if strings.HasSuffix(name, "without a byte") {
			body = ""
		}
		if _, known := Decode(h, strings.NewReader(body)); known {
			t.Errorf("%s: it is known", name)
		}
	}
}

func TestOnlyCodingsThatCanBeReadAreAskedFor(t *testing.T) {
	for _, row := range []struct{ lines, want string }{
		{"gzip, deflate, br, zstd", "gzip, deflate"},
		{"br;q=1.0, GZIP;q=0.8, *;q=0.1", "gzip;q=0.8, deflate;q=0.1"},
		{"br", "identity"},
		{"zstd, identity;q=0", "identity"},
		{"br, gzip;q=0", "identity"},
		{"br, *;q=0", "identity"},
		{"br, gzip, *;q=0", "gzip, *;q=0"},
		{"*", "gzip, deflate"},
		{"x-gzip, *;q=0.5", "x-gzip, deflate;q=0.5"},
		{"gzip\nbr", "gzip"},
		{"compress, identity", "identity"},
	} {
		got, changed := NarrowCodings(strings.Split(row.lines, "\n"))
		if got != row.want || !changed {
			t.Errorf("%q: got %q, changed %t, want %q", row.lines, got, changed, row.want)
		}
	}
}

func TestWhatAsksForNothingUnknownIsLeftAlone(t *testing.T) {
	for _, text := range []string{"", "gzip", "gzip;q=1, deflate;q=0.5, identity", "gzip, br;q=0", "identity, *;q=0", " , gzip ,"} {
		lines := []string{text}
		if got, changed := NarrowCodings(lines); changed {
			t.Errorf("%q: got %q, want it unchanged", text, got)
		}
		if n := testing.AllocsPerRun(10, func() { NarrowCodings(lines) }); n != 0 {
			t.Errorf("%q: got %v allocations, want none", text, n)
		}
	}
}

func TestARuleLooksIntoBodiesWhereItsConditionOrItsWaitIsThere(t *testing.T) {
	statuses := []StatusRange{{403, 403}}
	for name, row := range map[string]struct {
		rule Rule
		want bool
	}{
		"status": {Rule{ID: "a", When: Match{Statuses: statuses}, Then: Verdict{Class: Permanent}}, false},
		"empty":  {Rule{ID: "a", When: Match{Statuses: statuses, Body: BodyEmpty}, Then: Verdict{Class: Invalid}}, true},
		"wait": {Rule{ID: "a", When: Match{Statuses: statuses}, Then: Verdict{Class: Throttled},
			Wait: Wait{Source: Source{XML: &XMLValue{Name: "a"}, Format: hint.Seconds}}}, true},
	} {
		c, problems := New([]Rule{row.rule})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := c.LooksIntoBodies(); got != row.want {
			t.Errorf("%s: got %t, want %t", name, got, row.want)
		}
	}
	if neutralTable.LooksIntoBodies() {
		t.Error("the neutral table looks into bodies")
	}
}

func TestTheCodingThatHidesABodyIsExplained(t *testing.T) {
	c, problems := New([]Rule{{ID: "a/empty", When: Match{Body: BodyHTML}, Then: Verdict{Class: Invalid}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	x := answer("GET", 403, "Content-Type", "text/html", "Content-Encoding", "br")
	x.Body, x.Peeked = nil, false
	if got, want := c.Explain(x).Steps[0].Why, `the body is coded as "br", which cannot be read here`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("deflate", "x\x9c\x03\x00\x00\x00\x00\x01")
	f.Add("deflate", "\x03\x00")
	f.Add("gzip", "\x1f\x8b")
	f.Fuzz(func(t *testing.T, coding, wire string) {
		r, known := Decode(http.Header{"Content-Encoding": {coding}}, strings.NewReader(wire))
		if known != (r != nil) {
			t.Fatalf("known %t, reader %v", known, r)
		}
		if known {
			_, _ = io.Copy(io.Discard, io.LimitReader(r, policy.PeekLimit))
		}
	})
}

func FuzzNarrowCodings(f *testing.F) {
	f.Add("gzip, deflate, br, zstd")
	f.Add("br;q=1.0, *;q=0.1")
	f.Fuzz(func(t *testing.T, line string) {
		once, changed := NarrowCodings([]string{line})
		if !changed {
			return
		}
		if again, more := NarrowCodings([]string{once}); more {
			t.Errorf("%q became %q, and that %q", line, once, again)
		}
	})
}
