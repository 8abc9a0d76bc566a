package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/policy"
)

type callCmd struct {
	Target []string `arg:"" name:"[METHOD] URL|endpoint/path" help:"What to call: a URL, or the name of an endpoint of heed.yaml and a path."`

	Header   []string `short:"H" sep:"none" placeholder:"NAME: VALUE" help:"A header to send; may be repeated."`
	Data     *string  `short:"d" placeholder:"TEXT|@FILE" help:"The body to send; @FILE reads a file, @- standard input. Makes POST the default method. Sent as application/json if it is JSON, else as text/plain, unless -H names a Content-Type."`
	Method   string   `short:"X" placeholder:"METHOD" help:"The method, for those who are used to curl; the same as the word before the URL."`
	Output   string   `short:"o" placeholder:"FILE" help:"Write the answer to FILE, which appears only when the answer is complete and good: it is kept apart and checked first, as with verify: full (up to 1 GiB, or verify.spool_limit of the endpoint). A URL is judged by the profile generic: a page is no answer to Accept: application/json."`
	Key      string   `placeholder:"KEY" help:"The idempotency key of a write, which may then be repeated. Sent as Idempotency-Key unless heed.yaml has another name; only for APIs that honour it."`
	Budget   budget   `placeholder:"DURATION" help:"How long the call may take, waits included; 5m, 90s or a number of seconds; shortens the budget of the endpoint (60s for a URL)."`
	Once     bool     `help:"Send it once; do not retry."`
	Config   string   `placeholder:"FILE" help:"The configuration (heed.yaml)."`
	JSON     bool     `help:"Report the end of the call on stderr as one line of JSON, also when it went well."`
	Progress string   `enum:"auto,always,never" default:"auto" help:"Tell on stderr what the call waits for: auto (when it is a terminal), always, never."`
}

// Help is what heed call --help says beside the flags.
func (callCmd) Help() string {
	return `The body of the last answer goes to stdout whatever its status, but not that of an error dressed as a success; the exit code tells what it meant.

Examples:

    heed call https://api.example.com/v1/items
    heed call sierra/v6/bibs?limit=50 --budget 5m
    heed call POST jira/rest/api/3/issue -d @issue.json --key import-4711
    heed call https://api.example.com/v1/tokens -H 'Content-Type: application/x-www-form-urlencoded' -d grant_type=client_credentials
    heed call 'wfs/?service=WFS&request=GetFeature&typeNames=roads' -o roads.gml

` + exitHelp
}

// Run makes the call.
func (c *callCmd) Run(sh *shell) error {
	method, where, err := c.target()
	if err != nil {
		return usage(err)
	}
	w := newWatch(sh, c.Progress)
	defer w.close()
	to, err := c.resolve(sh, where, w)
	if err != nil {
		return usage(err)
	}
	defer to.close()
	c.adapt(to)
	r, err := c.request(sh, method, to.url)
	if err != nil {
		return usage(err)
	}
	if r.Body != nil {
		defer r.Body.Close()
	}
	out, err := openOutput(c.Output, sh.out)
	if err != nil {
		return usage(err)
	}
	w.write = sole(r, c.Key, to.transport.Policy)
	resp, err := to.transport.RoundTrip(r)
	if err == nil {
		err = deliver(resp, out, w)
	}
	return c.report(sh, resp, errors.Join(err, out.drop()), w)
}

// adapt puts what the command line asks for into the policy of the call.
func (c *callCmd) adapt(to *target) {
	p := &to.transport.Policy
	if c.Budget > 0 && to.endpoint == "" {
		p.Retry.Budget = time.Duration(c.Budget)
	}
	if c.Output != "" {
		p.Verify.Mode = policy.VerifyFull
	}
	if c.Key != "" && p.Key.Header == "" {
		p.Key.Header = "Idempotency-Key" // draft-ietf-httpapi-idempotency-key-header
	}
}

// sole tells whether sending r by another command might do it twice. A random
// key does not help: the other command would make another one.
func sole(r *http.Request, key string, p policy.Policy) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete: // RFC 9110 §9.2.2
		return false
	}
	k := p.WithDefaults().Key
	given := key != "" || r.Header.Get(k.Header) != "" || r.Header.Get("Idempotency-Key") != ""
	return k.Header == "" || !slices.Contains(k.Methods, r.Method) || !given && k.From != policy.KeyHash
}

// target tells method and place apart.
func (c *callCmd) target() (method, where string, err error) {
	method = http.MethodGet
	if c.Data != nil {
		method = http.MethodPost
	}
	if c.Method != "" {
		method = strings.ToUpper(c.Method)
	}
	switch len(c.Target) {
	case 1:
		return method, c.Target[0], nil
	case 2:
		if c.Method != "" {
			return "", "", errors.New("the method is given twice; write it before the URL or with -X")
		}
		return strings.ToUpper(c.Target[0]), c.Target[1], nil
	}
	return "", "", fmt.Errorf("call takes [METHOD] URL|endpoint/path, not %d words", len(c.Target))
}

// request builds the one request of the call.
func (c *callCmd) request(sh *shell, method string, u *url.URL) (*http.Request, error) {
	ctx := heed.WithCall(sh.ctx, heed.Call{Budget: time.Duration(c.Budget), Key: c.Key, RetryOff: c.Once})
	r, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, errors.New("the method or the URL cannot be sent")
	}
	for _, line := range c.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("a header is written as 'Name: value'; the one that begins with %.12q is not", name)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if strings.ContainsAny(name+value, "\r\n\x00") {
			return nil, fmt.Errorf("a header is one line; the one that begins with %.12q is more", name)
		}
		if http.CanonicalHeaderKey(name) == "Host" {
			r.Host = value
			continue
		}
		r.Header.Add(name, value)
	}
	if u.User != nil {
		r.URL.User = nil
		if password, _ := u.User.Password(); r.Header.Get("Authorization") == "" {
			r.SetBasicAuth(u.User.Username(), password)
		}
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", "heed/"+versionOf())
	}
	return r, c.fill(sh, r)
}

// fill gives r its body. A text and a file can be sent again by the transport
// without keeping them in memory twice; standard input it has to keep.
func (c *callCmd) fill(sh *shell, r *http.Request) error {
	if c.Data == nil {
		return nil
	}
	name, isFile := strings.CutPrefix(*c.Data, "@")
	switch {
	case !isFile:
		data := []byte(*c.Data)
		r.ContentLength = int64(len(data))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	case name == "-":
		begin, err := head(sh.in)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(io.MultiReader(bytes.NewReader(begin), sh.in)), -1
		setType(r, begin)
		return nil
	default:
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("-d %s cannot be read: %w", *c.Data, errors.Unwrap(err))
		}
		r.ContentLength = info.Size()
		r.GetBody = func() (io.ReadCloser, error) { return os.Open(name) }
	}
	body, err := r.GetBody()
	if err != nil {
		return err
	}
	begin, err := head(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return err
	}
	if r.Body, err = r.GetBody(); err != nil {
		return err
	}
	setType(r, begin)
	return nil
}

// resolve turns a URL, or endpoint/path, into a target that w watches. What comes
// of a URL is passed on as it comes, and nothing is known of its bodies; for a file
// it is looked at first, as one of an endpoint that says nothing but its URL.
func (c *callCmd) resolve(sh *shell, where string, w *watch) (*target, error) {
	if scheme, _, is := strings.Cut(where, "://"); !is || strings.ContainsAny(scheme, "/?#") {
		return sh.endpoint(where, c.Config, w)
	}
	if c.Config != "" {
		return nil, errors.New("a URL is called as it is, without a configuration: leave --config out, or name an endpoint of it and a path")
	}
	u, err := url.Parse(where)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the URL must be http://host/… or https://host/…")
	}
	if c.Output != "" {
		return sh.bare(u, w)
	}
	t := &heed.Transport{Observe: w.observe}
	return &target{url: u, transport: t, close: t.CloseIdleConnections}, nil
}
