package classify

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

func complete(t *testing.T, media, body string) error {
	t.Helper()
	known, err := Complete(media, strings.NewReader(body))
	if !known {
		t.Fatalf("%s is not known", media)
	}
	return err
}

func TestWholeDocumentsAreComplete(t *testing.T) {
	for _, row := range []struct{ media, body string }{
		{"application/json", `{"entries":[{"id":1,"x":-1.5e+3,"t":true,"f":false,"n":null,"s":"aé\"\\\u00e9"},{}],"e":[]}` + "\r\n\t "},
		{"application/json", `0`},
		{"application/json", ` "text" `},
		{"application/json; charset=utf-8", "\xef\xbb\xbf{}"},
		{"application/json", `"` + "\xe9" + `"`},
		{"application/vnd.api+json", `[]`},
		{"application/geo+json", `{"type":"FeatureCollection","features":[]}`},
		{"APPLICATION/JSON", `[]`},
		{"application/json;charset=utf-16", inUTF16(`{"a":"😀"}`)},
		{"application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n"},
		{"application/x-ndjson", ""},
		{"application/json-seq", "\x1e{\"a\":1}\n\x1e{\"a\":2}\n"},
		{"text/xml", `<a/>`},
		{"text/xml", "\xef\xbb\xbf<?xml version=\"1.0\"?>\n<a><b c='1' d = \"x > y\"/>text &amp; &#233; &nbsp;<![CDATA[<x>]]]></a >\n<!-- end --><?pi?>"},
		{"text/xml;charset=ISO-8859-1", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><caf\xe9>\xe9</caf\xe9>"},
		{"application/xml", inUTF16(`<?xml version="1.0" encoding="UTF-16"?><a>é</a>`)},
		{"application/vnd.ogc.se_xml", `<!DOCTYPE ServiceExceptionReport SYSTEM "http://schemas/exception.dtd"><ServiceExceptionReport/>`},
		{"application/vnd.ogc.gml", `<!DOCTYPE a [ <!-- it's --> <!ENTITY b "a > b"> <?x > ?> <!ELEMENT c (d)> ]><a>&b;</a>`},
		{"application/gml+xml; version=3.2", `<wfs:FeatureCollection xmlns:wfs="http://www.opengis.net/wfs/2.0"><wfs:member/></wfs:FeatureCollection>`},
		{"application/json", strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth)},
		{"text/xml", strings.Repeat("<a>", maxDepth) + strings.Repeat("</a>", maxDepth)},
	} {
		if err := complete(t, row.media, row.body); err != nil {
			t.Errorf("%s %.60q: %v", row.media, row.body, err)
		}
	}
}

func inUTF16(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

func TestDefects(t *testing.T) {
	for _, row := range []struct{ media, body, want string }{
		{"application/json", ``, "json ends at byte 0: missing a value"},
		{"application/json", `{"a":[1,{"b`, `json ends at byte 11: missing "}]}`},
		{"application/json", `{"a":`, "json ends at byte 5: missing }"},
		{"application/json", `[tru`, "json ends at byte 4: missing e]"},
		{"application/json", `[1.`, "json ends at byte 3: missing a digit]"},
		{"application/json", strings.Repeat("[", 30), "json ends at byte 30: missing ]]]]]]]]]]]]]]]]]…"},
		{"application/json", `{"a":1,}`, "json is broken at byte 7: not the name of a member"},
		{"application/json", `[1,]`, "json is broken at byte 3: not the beginning of a value"},
		{"application/json", `{"a" 1}`, "json is broken at byte 5: no colon after a name"},
		{"application/json", `[1 2]`, "json is broken at byte 3: neither a comma nor the end of the container"},
		{"application/json", `[1}`, "json is broken at byte 2: neither a comma nor the end of the container"},
		{"application/json", `{} {}`, "json is broken at byte 3: more after the value"},
		{"application/json", `<html>`, "json is broken at byte 0: not the beginning of a value"},
		{"application/json", `[01]`, "json is broken at byte 2: neither a comma nor the end of the container"},
		{"application/json", `[-x]`, "json is broken at byte 2: a number without digits"},
		{"application/json", `["\x"]`, "json is broken at byte 3: an unknown escape in a string"},
		{"application/json", "[\"\n\"]", "json is broken at byte 2: a control character in a string"},
		{"application/json", strings.Repeat("[", maxDepth+1), "json is broken at byte 10000: nested too deep"},
		{"application/x-ndjson", "{\"a\":1}\n{\"a\"", "json ends at byte 12: missing }"},
		{"text/xml", ``, "xml ends at byte 0: missing the root element"},
		{"text/xml", `<?xml version="1.0"?>`, "xml ends at byte 21: missing the root element"},
		{"text/xml", `<a><b>text`, "xml ends at byte 10: missing the ends of 2 elements"},
		{"text/xml", `<a><b c="d`, `xml ends at byte 10: missing "> and the ends of 1 elements`},
		{"text/xml", `<a><!-- b`, `xml ends at byte 9: missing --> and the ends of 1 elements`},
		{"text/xml", `<a></b>`, "xml is broken at byte 6: an end tag that ends another element"},
		{"text/xml", `<a/><b/>`, "xml is broken at byte 6: a second root element"},
		{"text/xml", `{"a":1}`, "xml is broken at byte 0: text outside the root element"},
		{"text/xml", `<a/>more`, "xml is broken at byte 4: text outside the root element"},
		{"text/xml", `<a b=c/>`, "xml is broken at byte 5: an attribute without quotes"},
		{"text/xml", `<a b/>`, "xml is broken at byte 4: an attribute without a value"},
		{"text/xml", `<a b="<"/>`, "xml is broken at byte 6: a < in the value of an attribute"},
		{"text/xml", `<a>1 & 2</a>`, "xml is broken at byte 6: an & that begins no reference"},
		{"text/xml", `<a>1 < 2</a>`, "xml is broken at byte 6: not a name"},
		{"text/xml", `<a></a b>`, "xml is broken at byte 7: more than a name in an end tag"},
		{"text/xml", `<a><!DOCTYPE a></a>`, "xml is broken at byte 5: a declaration after the root element began"},
		{"text/xml", "<" + strings.Repeat("a", maxName+1) + ">", "xml is broken at byte 1025: a name too long"},
		{"text/xml", strings.Repeat("<a>", maxDepth+1), "xml is broken at byte 30002: nested too deep"},
	} {
		err := complete(t, row.media, row.body)
		if err == nil {
			t.Errorf("%.60q is complete, want: %s", row.body, row.want)
			continue
		}
		if diff := cmp.Diff(err.Error(), row.want); diff != "" {
			t.Errorf("%.60q: got -, want +:\n%s", row.body, diff)
		}
	}
}

var samples = []struct{ media, body string }{
	{"application/json", `{"total":2,"entries":[{"id":"b1","title":"A \"b\" é","n":-1.5e3,"ok":true},{"id":null}],"e":{}}`},
	{"application/geo+json", "\xef\xbb\xbf" + `{"type":"Feature","geometry":{"type":"Point","coordinates":[13.4,52.5]}}`},
	{"application/problem+json", inUTF16(`{"a":[1,"é"]}`)},
	{"text/xml; charset=utf-8", `<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x "y">]><r a="1"><!-- c --><b:c b:d='2'/>&x;<![CDATA[ <z> ]]></r>`},
	{"application/gml+xml", `<wfs:FeatureCollection numberReturned="1"><gml:pos>1 2</gml:pos></wfs:FeatureCollection>`},
}

func TestCutAtEveryByteIsNoticed(t *testing.T) {
	for _, s := range samples {
		if err := complete(t, s.media, s.body); err != nil {
			t.Fatalf("%s: %v", s.media, err)
		}
		for n := range len(s.body) {
			err := complete(t, s.media, s.body[:n])
			if d, ok := errors.AsType[*Defect](err); !ok || !d.Cut {
				t.Errorf("%s cut at %d: got %v, want a cut", s.media, n, err)
			}
		}
	}
}

func TestLineCutWithinIsNoticed(t *testing.T) {
	const line = `{"id":1,"a":["x"]}`
	for n := 1; n < len(line); n++ {
		if err := complete(t, "application/x-ndjson", line+"\n"+line[:n]); err == nil {
			t.Errorf("cut at %d of the second line is not noticed", n)
		}
	}
}

func TestOtherMediaAreNotRead(t *testing.T) {
	for _, media := range []string{"", "text/html", "text/csv", "image/png", "application/octet-stream", "application/pdf"} {
		known, err := Complete(media, iotest.ErrReader(errors.New("read")))
		if known || err != nil {
			t.Errorf("%q: got %t, %v; want false, nil", media, known, err)
		}
	}
}

func TestReadErrorIsHandedOn(t *testing.T) {
	broken := errors.New("connection reset")
	for _, media := range []string{"application/json", "text/xml"} {
		_, err := Complete(media, io.MultiReader(strings.NewReader(" "), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("%s: got %v, want the error of the reader", media, err)
		}
	}
}

func TestSmallReadsMakeNoDifference(t *testing.T) {
	for _, s := range samples {
		if _, err := Complete(s.media, iotest.OneByteReader(strings.NewReader(s.body))); err != nil {
			t.Errorf("%s: %v", s.media, err)
		}
	}
}

// endless is a document whose middle goes on for n bytes.
func endless(begin, middle, end string, n int64) io.Reader {
	return io.MultiReader(strings.NewReader(begin), io.LimitReader(&loop{middle, 0}, n/int64(len(middle))*int64(len(middle))), strings.NewReader(end))
}

type loop struct {
	s  string
	at int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.s[l.at:])
	l.at = (l.at + n) % len(l.s)
	return n, nil
}

func TestMemoryDoesNotGrowWithTheDocument(t *testing.T) {
	for _, row := range []struct{ media, begin, middle, end string }{
		{"application/json", `["`, "a", `"]`},
		{"application/json", `[0`, `,{"a":[1,2]}`, `]`},
		{"text/xml", `<a>`, "text ", `</a>`},
		{"text/xml", `<a>`, `<b c="d"><e/></b>`, `</a>`},
		{"text/xml", `<a b="`, `value`, `"/>`},
		{"text/xml", `<a>`, `<!-- x --><![CDATA[y]]>`, `</a>`},
	} {
		// The runtime allocates too, now and then: the fewest of several runs
		// are those of the work itself.
		allocs := func(n int64) float64 {
			fewest := math.Inf(1)
			for range 4 {
				fewest = min(fewest, testing.AllocsPerRun(1, func() {
					if _, err := Complete(row.media, endless(row.begin, row.middle, row.end, n)); err != nil {
						t.Errorf("%s: %v", row.middle, err)
					}
				}))
			}
			return fewest
		}
		if small, large := allocs(64<<10), allocs(512<<10); large > small {
			t.Errorf("%s %s: %v allocations for 64 KiB, %v for 512 KiB", row.media, row.middle, small, large)
		}
	}
}

func TestSpoiledTellsCutFromBroken(t *testing.T) {
	got := []Class{
		Spoiled(complete(t, "application/json", `{"a":`)).Class,
		Spoiled(complete(t, "application/json", `{"a":}`)).Class,
		Spoiled(io.ErrUnexpectedEOF).Class,
	}
	if diff := cmp.Diff(got, []Class{Truncated, Invalid, Truncated}); diff != "" {
		t.Errorf("got -, want +:\n%s", diff)
	}
}

// FuzzCompleteJSON holds Complete against the decoder of the standard library.
func FuzzCompleteJSON(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s.body))
	}
	for _, s := range []string{`{`, `[1,]`, `-`, `0e`, `"\ud800"`, "\x00", `{"a":1}{`, "nul"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := Complete("application/json", bytes.NewReader(b))
		if len(b) >= 2 && byteOrder(b[:2]) != nil {
			return
		}
		text := bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		if got, want := err == nil, json.Valid(text); got != want {
			t.Errorf("%q: complete %t, want %t (%v)", b, got, want, err)
		}
	})
}

// FuzzCompleteXML: what is accepted is no longer accepted without its last tag.
func FuzzCompleteXML(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s.body))
	}
	for _, s := range []string{`<a`, `<a>&b;</a>`, `<a><![CDATA[]]>]]></a>`, `<!DOCTYPE a [<!`, `</a>`, "<a\x00>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := Complete("text/xml", bytes.NewReader(b))
		if err != nil || len(b) >= 2 && byteOrder(b[:2]) != nil {
			return
		}
		end := bytes.LastIndexByte(b, '<')
		if _, err := Complete("text/xml", bytes.NewReader(b[:end])); err == nil && bytes.HasPrefix(b[end:], []byte("</")) {
			t.Errorf("%q without its last tag is complete", b)
		}
	})
}
