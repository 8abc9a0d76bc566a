package token

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/mask"
)

const (
	answerMax = 1 << 20   // bytes of an issuer's answer that are taken
	retryMax  = time.Hour // of an issuer's Retry-After that is believed
)

// wire is what fetchers send with where their Via is nil. A fetch is rare, so
// that no connection is kept for the next one. Redirects are not followed by a
// RoundTripper, and must not be: the request carries the secret.
var wire http.RoundTripper = &http.Transport{
	Proxy:                  http.ProxyFromEnvironment,
	DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
	TLSHandshakeTimeout:    10 * time.Second,
	ResponseHeaderTimeout:  30 * time.Second,
	MaxResponseHeaderBytes: 256 << 10,
	ForceAttemptHTTP2:      true,
	DisableKeepAlives:      true,
}

// issuer is one address of an issuer.
type issuer struct {
	op  string
	url string
	via http.RoundTripper
}

// answer is what an issuer said, with its body read.
type answer struct {
	*http.Response
	body []byte
	sent time.Time // from when the life of what it gave is counted
	from *Error    // the place, for errors about the answer
}

// post sends body with header. An answer other than 2xx is an *Error.
func (i issuer) post(ctx context.Context, header http.Header, body string) (*answer, error) {
	req, err := i.request(ctx, header, body)
	if err != nil {
		return nil, err
	}
	via := i.via
	if via == nil {
		via = wire
	}
	a := &answer{sent: time.Now().Round(0), from: &Error{Op: i.op, Host: req.URL.Host, Path: mask.Path(req.URL.EscapedPath())}}
	a.Response, err = via.RoundTrip(req)
	if err != nil {
		return nil, a.fail(cause(ctx, bare(err)))
	}
	defer a.Body.Close()
	a.body, err = io.ReadAll(io.LimitReader(a.Body, answerMax+1))
	a.from.Status = a.StatusCode
	if a.StatusCode/100 != 2 {
		return nil, a.reject()
	}
	if err != nil {
		return nil, a.fail(cause(ctx, err))
	}
	if len(a.body) > answerMax {
		return nil, a.fail(errLarge)
	}
	return a, nil
}

func (i issuer) request(ctx context.Context, header http.Header, body string) (*http.Request, error) {
	// The parser's error would repeat the URL, which may carry a password.
	bad := &Error{Op: i.op, Refused: true, Err: why("the url cannot be used: give http or https, host and path")}
	u, err := url.Parse(i.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, bad
	}
	u.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, bad
	}
	req.Header = header
	return req, nil
}

// cause prefers why ctx ended to what the wire made of it.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fail returns an error about the answer, or about its absence.
func (a *answer) fail(err error) *Error {
	e := *a.from
	e.Err = err
	return &e
}

// reject turns an answer other than 2xx into an error.
func (a *answer) reject() *Error {
	e := Answered(a.from.Op, a.StatusCode, codeIn(a.body))
	e.Host, e.Path = a.from.Host, a.from.Path
	now := time.Now()
	if h := (*hint.Reader)(nil).Read(a.Header, now); h.HasWait && h.Wait > 0 {
		e.RetryAt = now.Add(min(h.Wait, retryMax))
	}
	return e
}

// codeIn returns the error code of an RFC 6749 §5.2 answer.
func codeIn(body []byte) string {
	var said struct {
		Error any `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	code, _ := said.Error.(string)
	return code
}
