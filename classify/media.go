package classify

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/heedproject/heed/policy"
)

// kind is what a media type lets expect of a body. Kinds are bits, so that a
// rule can name several.
type kind uint8

const (
	kindNone   kind = 1 << iota // no Content-Type
	kindJSON                    // one document
	kindLines                   // many JSON documents
	kindXML                     // any XML, GML included
	kindPlain                   // text/plain
	kindText                    // HTML, CSV, forms, scripts
	kindBinary                  // everything else

	anyText = kindNone | kindJSON | kindLines | kindXML | kindPlain | kindText
	anyKind = anyText | kindBinary
)

var lineTypes = []string{
	"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl",
	"application/jsonlines", "application/x-jsonlines", "application/json-lines", "application/json-seq",
	"text/x-ndjson", "text/jsonl",
}

// kindOf tells the kind of an essence in lower case.
func kindOf(essence string) kind {
	switch {
	case essence == "":
		return kindNone
	case essence == "text/plain":
		return kindPlain
	case strings.HasSuffix(essence, "/json"), strings.HasSuffix(essence, "+json"), strings.HasSuffix(essence, "/x-json"):
		return kindJSON
	// OGC services of old write application/vnd.ogc.se_xml and vnd.ogc.gml.
	case strings.HasSuffix(essence, "/xml"), strings.HasSuffix(essence, "+xml"), strings.HasSuffix(essence, "_xml"),
		strings.HasSuffix(essence, "gml"):
		return kindXML
	case slices.Contains(lineTypes, essence), strings.HasSuffix(essence, "+json-seq"):
		return kindLines
	case strings.HasPrefix(essence, "text/"), strings.HasSuffix(essence, "/javascript"),
		strings.HasSuffix(essence, "/x-www-form-urlencoded"), strings.HasSuffix(essence, "/yaml"):
		return kindText
	}
	return kindBinary
}

// essence is the media type of an answer without parameters, in lower case.
func essence(h http.Header) string { return essenceOf(first(h, "Content-Type")) }

// essenceOf cuts at anything that can follow a type, because servers also
// write a blank or a comma where a semicolon is due.
func essenceOf(media string) string {
	media = strings.TrimLeft(media, " \t")
	if end := strings.IndexAny(media, "; \t,"); end >= 0 {
		media = media[:end]
	}
	return strings.ToLower(media)
}

// first is the first line of the header with this canonical name.
func first(h http.Header, name string) string {
	if lines := h[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// coded tells whether the header still names a content coding.
func coded(h http.Header) bool { return Coding(h) != "" }

// bodyless tells whether an answer has no body by its nature (RFC 9110 §6.4.1).
func bodyless(x *Exchange) bool {
	return x.Method == http.MethodHead || x.Status < 200 || x.Status == http.StatusNoContent ||
		x.Status == http.StatusResetContent || x.Status == http.StatusNotModified
}

// ended tells whether Body reaches the end. A compressed body may end on the
// wire and still hold more than a peek.
func ended(x *Exchange) bool {
	return x.BodyEnd && (!coded(x.Header) || len(x.Body) < policy.PeekLimit)
}

// whole tells whether Body is the whole body.
func whole(x *Exchange) bool {
	return ended(x) || x.ContentLength >= 0 && int64(len(x.Body)) >= x.ContentLength && !coded(x.Header)
}

// empty tells whether a body was due and is not there.
func empty(x *Exchange) bool {
	switch {
	case bodyless(x) || x.ContentLength > 0 && !x.Peeked:
		return false
	case x.ContentLength == 0:
		return true
	}
	return x.Peeked && whole(x) && len(x.Body) < sniff && blank(x.Body)
}

func blank(b []byte) bool {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	return len(bytes.TrimLeft(b, " \t\r\n")) == 0
}
