package classify

import "regexp"

// Rule is one line of a provider's dialect. All that is set in When must hold.
type Rule struct {
	ID   string
	When Match
	// Then is the verdict; its Rule is set from ID.
	Then Verdict
	// Wait reads the floor for the next attempt from the answer.
	Wait Wait
	// Override, when its Header is set, stands in place of Then and Wait.
	Override Override
}

// Override is a header by which a server says itself whether to repeat
// (Stripe, OpenAI, Anthropic). A no beats every rule but the renewal of a
// credential, which makes another request of it. A yes beats the neutral
// table, but no rule: a rule that says never knows of a limit that the
// server's retry layer does not.
type Override struct {
	Header string
	// Yes and No are what the header must match. nil: true and false.
	Yes, No *regexp.Regexp
}

// Match is a condition on an exchange. Empty fields hold for everything, but
// not all of them may be empty.
//
// A condition on the body holds only for bytes that were seen. Without Media
// and NotMedia it implies what it can read: JSON and XML conditions look at
// bodies of that kind, plain text and bodies without a type, Text and Body at
// all that is text. A picture or an archive is looked at only where Media or
// NotMedia asks for it.
type Match struct {
	Methods  []string
	Paths    []string // globs, see policy.Match
	Asked    []string // media types: the request accepts nothing but these
	Statuses []StatusRange
	Failures []Failure
	Media    []string // essences: application/json, image/*, */*+xml; matched without parameters
	// NotMedia holds when the answer has a body whose media type is none of
	// these: an answer of the wrong kind. A missing Content-Type proves nothing.
	NotMedia []string
	Header   []HeaderMatch
	JSON     []JSONMatch
	XML      *XMLMatch
	Text     *regexp.Regexp // searched in the first bytes
	Body     BodyState
}

// StatusRange is a range of status codes, both ends included.
type StatusRange struct{ From, To int }

// HeaderMatch is a condition on one header: some line of it matches Value (nil:
// is there), or with Present false, none does.
type HeaderMatch struct {
	Name    string
	Present *bool
	Value   *regexp.Regexp
}

// Selector finds values in a decoded JSON document: map[string]any, []any,
// string, json.Number, bool and nil. A compiled JSON path (RFC 9535) is one;
// this package does not bring the parser.
type Selector interface {
	Select(doc any) []any
}

// JSONMatch is a condition on the selected values: with Value set, at least
// one of them, written as text, must match; with Absent, nothing may be selected.
// A null is a value. Of a document that goes on beyond the peek, or that is
// broken, the part before is searched; Absent does not hold for it, because
// what is missing may follow. Numbers keep the spelling of the document.
type JSONMatch struct {
	Path   Selector
	Value  *regexp.Regexp
	Absent bool
}

// XMLMatch holds when an element with one of these local names, in any
// namespace, begins within the peek, and Value matches: with Attr set an
// attribute of that local name, without it the text that the element begins
// with. Document types, prefixes, comments and a cut end are no obstacle;
// entities of a document's own are not expanded.
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
	BodyEmpty     BodyState = "empty"     // a body was due, and has no bytes or less than 1 KiB of white space
	BodyMalformed BodyState = "malformed" // not empty, claims JSON or XML and is not, or ends unclosed within the peek
	BodyHTML      BodyState = "html"      // begins like HTML, whatever it claims to be
)
