package classify

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// LooksIntoBodies tells whether some rule of c has a condition on the body, or
// reads a wait from it, so that the body must come in a coding that is known.
func (c *Classifier) LooksIntoBodies() bool { return c != nil && c.peeks }

// Decode reads body without its content coding (RFC 9110 §8.4.1). known is
// false where the coding is none of gzip and deflate, or where several were
// applied, which nobody does: then nothing of body can be understood.
func Decode(h http.Header, body io.Reader) (r io.Reader, known bool) {
	switch coding := Coding(h); coding {
	case "":
		return body, true
	case "gzip", "x-gzip":
		if z, err := gzip.NewReader(body); err == nil {
			return z, true
		}
	case "deflate":
		return inflate(body)
	}
	return nil, false
}

// Coding is what the header says of the body's coding, in lower case. "": none.
func Coding(h http.Header) string {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(h["Content-Encoding"], ", ")))
	if coding == "identity" {
		return ""
	}
	return coding
}

// inflate reads deflate, which means the zlib format (RFC 9110 §8.4.1.2), and
// raw deflate data too, which some servers send under that name and every
// browser reads. What begins like zlib is zlib: raw data would have to begin
// with a stored block whose padding is not zero.
func inflate(body io.Reader) (r io.Reader, known bool) {
	b := bufio.NewReader(body)
	begin, _ := b.Peek(2)
	if len(begin) == 0 {
		return nil, false
	}
	// RFC 1950 §2.2: method 8, and both bytes are a multiple of 31.
	if len(begin) == 2 && begin[0]&0x0f == 8 && (int(begin[0])<<8|int(begin[1]))%31 == 0 {
		if z, err := zlib.NewReader(b); err == nil {
			return z, true
		}
		return nil, false // it asks for a dictionary that nobody has
	}
	return flate.NewReader(b), true
}

// readable are the codings that Decode undoes, as a request asks for them.
var readable = [...]string{"gzip", "deflate"}

// NarrowCodings is what these lines of Accept-Encoding ask for, less the
// codings that Decode does not know, so that a server which likes br best
// answers in one that can be read. Weights stay as they are, a * stands for
// what is known, and where nothing is left identity is asked for. changed is
// false, and nothing is allocated, where all that is asked for is known.
func NarrowCodings(lines []string) (value string, changed bool) {
	if !slices.ContainsFunc(lines, asksForMore) {
		return "", false
	}
	text := strings.ToLower(strings.Join(lines, ","))
	var kept []string
	for member := range strings.SplitSeq(text, ",") {
		coding, weight := weighted(member)
		switch {
		case understood(coding), coding == "*" && refused(weight):
			kept = append(kept, strings.TrimSpace(member))
		case coding == "*":
			kept = append(kept, others(text, weight)...)
		}
	}
	if !slices.ContainsFunc(kept, wanted) {
		return "identity", true
	}
	return strings.Join(kept, ", "), true
}

// weighted parts a member of Accept-Encoding (RFC 9110 §12.5.3).
func weighted(text string) (coding, weight string) {
	coding, weight, _ = strings.Cut(text, ";")
	return strings.TrimSpace(coding), strings.TrimSpace(weight)
}

// asksForMore tells whether line asks for a coding that Decode does not know.
func asksForMore(line string) bool {
	for member := range strings.SplitSeq(line, ",") {
		if coding, weight := weighted(member); coding != "" && !understood(coding) && !refused(weight) {
			return true
		}
	}
	return false
}

// others are the readable codings that text does not name, with this weight.
func others(text, weight string) (members []string) {
	for _, coding := range readable {
		switch {
		case strings.Contains(text, coding):
		case weight == "":
			members = append(members, coding)
		default:
			members = append(members, coding+";"+weight)
		}
	}
	return members
}

func understood(coding string) bool {
	return strings.EqualFold(coding, "gzip") || strings.EqualFold(coding, "x-gzip") ||
		strings.EqualFold(coding, "deflate") || strings.EqualFold(coding, "identity")
}

// wanted tells whether a member lets the server use its coding.
func wanted(member string) bool {
	_, weight := weighted(member)
	return !refused(weight)
}

// refused tells whether the weight, such as q=0.0, is zero.
func refused(weight string) bool {
	name, value, _ := strings.Cut(weight, "=")
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && q == 0 && strings.EqualFold(strings.TrimSpace(name), "q")
}
