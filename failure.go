package heed

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/heedproject/heed/classify"
)

// streamError has the shape of the HTTP/2 stream error that net/http brings
// along and does not export; its As method fills any struct of this shape.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (streamError) Error() string { return "HTTP/2 stream error" }

// refusedStream is REFUSED_STREAM (RFC 9113 §7): not processed.
const refusedStream = 7

// failureOf translates the error of an attempt. Errors are told apart by type,
// never by text.
func failureOf(err error, o *op) classify.Failure {
	if o.in.Context().Err() != nil {
		return classify.Canceled
	}
	if f := refusedByUs(err); f != classify.NoFailure {
		return f
	}
	if f := dialFailure(err); f != classify.NoFailure {
		return f
	}
	if f := tlsFailure(err); f != classify.NoFailure {
		return f
	}
	if s, ok := errors.AsType[streamError](err); ok && s.Code == refusedStream || refusedUnread(err) {
		return classify.Unwritten
	}
	timeout := isTimeout(err) || o.ctx.late()
	if o.body != nil && o.body.unread(timeout) {
		return classify.Unread
	}
	switch {
	case o.ctx.conns() == 0 && traced(o):
		if timeout {
			return classify.ConnectTimeout
		}
		if !sendable(o.in) {
			return classify.BadRequest
		}
		return classify.Unwritten
	case timeout:
		return classify.HeaderTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return classify.ResetBeforeHeader
	case traced(o) && o.ctx.http1() && !isType[*net.OpError](err):
		return classify.ProtocolError // what is left, and net/http has no types for it
	}
	return classify.OtherFailure
}

// refusedUnread tells that HTTP/2 refused the request unread, where net/http
// would have repeated it itself had it not been forbidden to. It then says so
// in a text and in nothing else, the one place where heed reads an error's
// text. Should it change, a write is not repeated that could have been.
// PROTOCOL_ERROR, which net/http repeats too, proves nothing.
func refusedUnread(err error) bool {
	text := err.Error()
	return strings.Contains(text, "http2: Transport: cannot retry err [") && !strings.Contains(text, "PROTOCOL_ERROR")
}

// traced tells whether Base is one that reports its connections. One that does
// not, a test double for example, proves nothing by its silence.
func traced(o *op) bool {
	_, ok := o.s.base.(*http.Transport)
	return ok
}

func refusedByUs(err error) classify.Failure {
	if b, ok := errors.AsType[interface {
		error
		Blocked() bool
	}](err); ok && b.Blocked() {
		return classify.Blocked
	}
	return classify.NoFailure
}

func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

func dialFailure(err error) classify.Failure {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound && !dns.IsTemporary {
			return classify.DNSNotFound
		}
		return classify.DNSTemporary
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		if op.Timeout() {
			return classify.ConnectTimeout
		}
		return classify.Refused
	}
	return classify.NoFailure
}

func tlsFailure(err error) classify.Failure {
	if isType[*tls.CertificateVerificationError](err) || isType[tls.RecordHeaderError](err) || isType[tls.AlertError](err) ||
		isType[x509.UnknownAuthorityError](err) || isType[x509.HostnameError](err) || isType[x509.CertificateInvalidError](err) {
		return classify.TLSFailed
	}
	return classify.NoFailure
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// sendable tells whether net/http would send r at all.
func sendable(r *http.Request) bool {
	if s := r.URL.Scheme; s != "http" && s != "https" {
		return false
	}
	for name, values := range r.Header {
		if !isToken(name) {
			return false
		}
		for _, v := range values {
			for _, c := range []byte(v) {
				if c < ' ' && c != '\t' || c == 0x7f {
					return false
				}
			}
		}
	}
	return isToken(method(r))
}

func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
