package check

import (
	"context"
	"strings"
	"time"
)

// Client is how the client under test is reached.
type Client interface {
	// Hello says who it is and what it claims to do.
	Hello(ctx context.Context) (Hello, error)
	// Open begins a session: one for each case, with nothing kept from another.
	Open(ctx context.Context, s Setting) (Session, error)
}

// Session does operations. Do is called from several goroutines at a time if
// the client claims Parallel.
type Session interface {
	Do(ctx context.Context, t Task) Outcome
	// Close ends the session and all that it has begun, and tells what the
	// client has written to its outputs.
	Close() Output
}

// Hello is what a client says of itself.
type Hello struct {
	Name    string  `json:"name,omitempty"`
	Version string  `json:"version,omitempty"`
	Claims  []Claim `json:"claims,omitempty"`
	// Serial asks for one case at a time.
	Serial bool `json:"serial,omitempty"`
	// Cannot are claims that nobody reached in this way can make, and why.
	Cannot map[Claim]string `json:"-"`
}

// cannot says why a case is not for the client, whatever it claims; "": it is.
func (h *Hello) cannot(c *Case) string {
	for _, n := range c.Needs {
		if why := h.Cannot[n]; why != "" {
			return why
		}
	}
	return ""
}

// Setting is what a session is told at its beginning.
type Setting struct {
	Case string `json:"case"`
	// BaseURL is what all URLs of the session begin with.
	BaseURL string `json:"base_url"`
	// APIKey is the credential. It is sent as a bearer token, and nowhere told.
	APIKey string `json:"api_key"`
	// TokenURL is where a client that claims Tokens gets bearer tokens, by POST.
	TokenURL string `json:"token_url,omitempty"`
	// Provider is whom the world plays, such as github, for clients that have
	// settings for some; empty: nobody.
	Provider string `json:"provider,omitempty"`
	// Deadline is that of the longest operation.
	Deadline time.Duration `json:"-"`
	Seed     uint64        `json:"seed,omitempty"`
	id       string        // of the session, among those of all runs
}

// Task is an Operation as the client sees it.
type Task struct {
	ID         string            `json:"id"`
	Kind       Kind              `json:"op"`
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Header     map[string]string `json:"header,omitempty"`
	Body       string            `json:"body,omitempty"`
	Keyed      bool              `json:"keyed,omitempty"`
	Tenant     string            `json:"tenant,omitempty"`
	DeadlineMS int64             `json:"deadline_ms,omitempty"`
	Secret     string            `json:"secret,omitempty"` // Receive: signs the webhooks
}

// Deadline is when the client is told to give up. 0: it is not told.
func (t Task) Deadline() time.Duration { return time.Duration(t.DeadlineMS) * time.Millisecond }

// Outcome is what the client believes.
type Outcome struct {
	ID     string `json:"id"`
	OK     bool   `json:"ok"`
	Status int    `json:"status,omitempty"`
	Error  string `json:"error,omitempty"`
	// URL is where a Receive listens.
	URL string `json:"url,omitempty"`

	// Broken says why the client gave no answer at all: it crashed, hung or
	// wrote something that is none. The other fields are then empty.
	Broken string `json:"-"`
	// Began and Ended are instants of the wall.
	Began, Ended time.Time `json:"-"`

	flooded bool // its case was ended because it sent too much
}

// Output is what a client wrote beside its answers, clipped.
type Output struct {
	Text  string // of both outputs
	Bytes int64  // how much there was
	// Told are the secrets that were found in all of it.
	Told []string
	// Left is how many processes it left behind, which were ended.
	Left int
	// Fault says how it broke the protocol by which it is asked; nothing is known of
	// what it does over HTTP then.
	Fault string
	// Stray are how many lines between its outcomes were none, and FirstStray is the
	// first.
	Stray      int
	FirstStray string
}

func before(s, sep string) string { a, _, _ := strings.Cut(s, sep); return a }

func cut(s, sep string) (string, string) { a, b, _ := strings.Cut(s, sep); return a, b }
