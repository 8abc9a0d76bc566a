package classify

import (
	"regexp"
	"time"

	"github.com/heedproject/heed/hint"
)

// Rule is one line of a provider's dialect. All that is set in When must hold.
type Rule struct {
	ID   string
	When Match
	// Then is the verdict; its Rule is set from ID.
	Then Verdict
	// Wait, when its Format is set, reads the floor from the body.
	Wait BodyWait
}

// Match is a condition on an exchange. Empty fields hold for everything.
type Match struct {
	Methods  []string
	Paths    []string // globs, see policy.Match
	Statuses []StatusRange
	Failures []Failure
	Media    []string // essences: application/json, image/*, */*+xml; matched without parameters
	// NotMedia holds when the media type is none of these: an answer of the
	// wrong kind.
	NotMedia []string
	Header   []HeaderMatch
	JSON     []JSONMatch
	XML      *XMLMatch
	Text     *regexp.Regexp // searched in the first bytes
	Body     BodyState
}

// StatusRange is a range of status codes, both ends included.
type StatusRange struct{ From, To int }

// HeaderMatch is a condition on one header.
type HeaderMatch struct {
	Name    string
	Present *bool
	Value   *regexp.Regexp
}

// Selector finds values in a decoded JSON document. A compiled JSON path
// (RFC 9535) is one; this package does not bring the parser.
type Selector interface {
	Select(doc any) []any
}

// JSONMatch is a condition on the selected values: with Value set, at least
// one of them, written as text, must match; with Absent, nothing may be selected.
type JSONMatch struct {
	Path   Selector
	Value  *regexp.Regexp
	Absent bool
}

// XMLMatch holds when an element with one of these local names, in any
// namespace, begins within the peek, and, with Attr set, has an attribute
// of that local name whose value matches Value.
type XMLMatch struct {
	Names []string
	Attr  string
	Value *regexp.Regexp
}

// BodyState is a condition on the body as a whole.
type BodyState string

// The states.
const (
	BodyAny       BodyState = ""
	BodyEmpty     BodyState = "empty"     // no bytes, or white space only
	BodyMalformed BodyState = "malformed" // claims JSON or XML and is not, or ends unclosed within the peek
	BodyHTML      BodyState = "html"
)

// BodyWait reads a wait out of the body: by JSON path, or by the first group
// of Text.
type BodyWait struct {
	Path   Selector
	Text   *regexp.Regexp
	Format hint.Format
	Floor  time.Duration
}
