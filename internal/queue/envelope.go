package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// EnvelopeVersion is the version that is written.
const EnvelopeVersion = 1

// Envelope is a call as a document: the request of an async caller, a broker's
// message, the export of a dead letter and the input of a replay. It holds
// everything in the clear.
type Envelope struct {
	Version  int         `json:"heed"`
	ID       string      `json:"id,omitempty"`
	Method   string      `json:"method"`
	Endpoint string      `json:"endpoint"`
	Path     string      `json:"path"` // and query
	Header   http.Header `json:"headers,omitempty"`
	Body     []byte      `json:"body,omitempty"` // base64
	Key      string      `json:"idempotency_key,omitempty"`
	Tenant   string      `json:"tenant,omitempty"`
	Priority *int        `json:"priority,omitempty"` // nil: DefaultPriority
	// NotBefore and Expires are RFC 3339.
	NotBefore     time.Time `json:"not_before,omitzero"`
	Expires       time.Time `json:"expires,omitzero"`
	CorrelationID string    `json:"correlation_id,omitempty"`
	TraceParent   string    `json:"traceparent,omitempty"`
	Callback      string    `json:"callback,omitempty"`
}

// DefaultPriority is that of a call which names none.
const DefaultPriority = 5

// String tells what may be told.
func (e Envelope) String() string {
	return fmt.Sprintf("envelope(%s %s, %d bytes)", e.Method, e.Endpoint, len(e.Body))
}

// GoString is String.
func (e Envelope) GoString() string { return e.String() }

// unfit says what is wrong with an envelope. It is ErrInvalid.
type unfit string

func (e unfit) Error() string { return string(e) }

// Unwrap returns ErrInvalid, whose word the text does not repeat.
func (e unfit) Unwrap() error { return ErrInvalid }

func unfitf(format string, args ...any) error { return unfit(fmt.Sprintf(format, args...)) }

// ParseEnvelope reads one envelope. It is strict: a field that is misspelt
// would silently not be honoured.
func ParseEnvelope(text []byte) (Envelope, error) {
	var e Envelope
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return Envelope{}, fmt.Errorf("read envelope: %w", plain(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Envelope{}, fmt.Errorf("read envelope: %w", unfit("more follows after it: give one JSON object"))
	}
	if err := e.check(); err != nil {
		return Envelope{}, fmt.Errorf("read envelope: %w", err)
	}
	return e, nil
}

// plain says what is wrong without quoting a value.
func plain(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return unfitf("field %s at byte %d is a %s, want %s", e.Field, e.Offset, kind(e.Value), e.Type)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return unfitf("it is not JSON at byte %d", e.Offset)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return unfitf("unknown field %.40s: remove it or correct its name", name)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unfitf("it ends too early")
	}
	return unfitf("a value has the wrong form: body is base64, times are RFC 3339")
}

// kind is the JSON kind of a value; for numbers the decoder adds the number.
func kind(value string) string {
	word, _, _ := strings.Cut(value, " ")
	return word
}

func (e *Envelope) check() error {
	switch {
	case e.Version == 0:
		return unfitf("it has no version: write \"heed\": %d", EnvelopeVersion)
	case e.Version != EnvelopeVersion:
		return unfitf("version %d is not known, only %d", e.Version, EnvelopeVersion)
	case e.Method == "":
		return unfitf("method is missing")
	case e.Endpoint == "":
		return unfitf("endpoint is missing")
	case !strings.HasPrefix(e.Path, "/"):
		return unfitf("path does not begin with /: give the path below the endpoint's URL, never a URL")
	case e.Priority != nil && (*e.Priority < 0 || *e.Priority > 9):
		return unfitf("priority is %d: use 0 to 9", *e.Priority)
	}
	return nil
}

// Call makes a call of it. What only the policy knows (Gate, Template,
// Repeatable, KeyWindow) is for the caller to fill.
func (e *Envelope) Call() Call {
	c := Call{
		Facts: Facts{ID: e.ID, Endpoint: e.Endpoint, Method: e.Method, Tenant: e.Tenant, Priority: DefaultPriority,
			NotBefore: e.NotBefore, Expires: e.Expires, CorrelationID: e.CorrelationID, TraceParent: e.TraceParent},
		Request: Request{Path: e.Path, Header: e.Header, Body: e.Body, Key: e.Key, Callback: e.Callback},
	}
	if e.Priority != nil {
		c.Priority = *e.Priority
	}
	return c
}

// Envelope makes the document of a call.
func (c *Call) Envelope() Envelope {
	return Envelope{Version: EnvelopeVersion, ID: c.ID, Method: c.Method, Endpoint: c.Endpoint, Path: c.Path,
		Header: c.Header, Body: c.Body, Key: c.Key, Tenant: c.Tenant, Priority: &c.Priority,
		NotBefore: c.NotBefore, Expires: c.Expires, CorrelationID: c.CorrelationID, TraceParent: c.TraceParent,
		Callback: c.Callback}
}
