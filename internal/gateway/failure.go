package gateway

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

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
)

// failures are how an attempt can fail, by the word for it.
var failures = func() map[string]classify.Failure {
	m := map[string]classify.Failure{}
	for f := classify.NoFailure + 1; f <= classify.OtherFailure; f++ {
		m[f.String()] = f
	}
	return m
}()

// lastFailure is what kept the last attempt of a call from an answer. A Status
// does not tell: it may be that of an attempt before.
func lastFailure(e *heed.Error) classify.Failure {
	if f, ok := failures[e.Report.Rule]; ok {
		return f
	}
	if c := cause(e.Err); c != nil && (e.Status == 0 || c != context.DeadlineExceeded) {
		return classify.OtherFailure // a rule of the provider decided what it meant
	}
	return classify.NoFailure
}

// cause is what the last attempt failed with, without the end of the budget
// that a call which ended by the clock carries too.
func cause(err error) error {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return err
	}
	var kept []error
	for _, one := range all.Unwrap() {
		if one != context.DeadlineExceeded {
			kept = append(kept, one)
		}
	}
	return errors.Join(kept...)
}

// blame makes k tell what the last attempt came to, in the words of RFC 9209
// §2.3: how it failed, or what was wrong with its answer.
func (k *kind) blame(e *heed.Error) {
	f := lastFailure(e)
	switch {
	case f != classify.NoFailure:
		if fault, status := faultOf(f, cause(e.Err)); fault != "" {
			k.fault = fault
			if k.status == http.StatusBadGateway {
				k.status = status
			}
		}
	case e.Status != 0 && e.Status < http.StatusBadRequest:
		k.fault = wrongOf(e.Class)
	}
}

// wrongOf is the fault of an answer that is not what it claims to be. One that
// says in its body what its status denies breaks RFC 9110 §15.
func wrongOf(c classify.Class) string {
	switch c {
	case classify.Truncated:
		return "http_response_incomplete"
	case classify.Stale:
		return "proxy_internal_response"
	}
	return "http_protocol_error"
}

// faultOf returns the error type for an attempt that failed with f, and the
// status that goes with it. Empty: nothing more is known.
func faultOf(f classify.Failure, err error) (string, int) {
	switch {
	case f == classify.BodyTimeout:
		return "http_response_timeout", http.StatusGatewayTimeout
	case f == classify.BodyCut:
		return bodyFault(err), http.StatusBadGateway
	case f == classify.ProtocolError:
		return headFault(err), http.StatusBadGateway
	case err != nil:
		return wireFault(err)
	}
	return "", 0
}

// notInChunks is the fault of a body that is not, although its head says so.
const notInChunks = "http_response_transfer_coding"

// bodyFault tells a body that broke off from one that is not in chunks although
// it should be.
func bodyFault(err error) string {
	if err == nil || broken(err) || is[net.Error](err) {
		return "http_response_incomplete"
	}
	return notInChunks
}

// headTooLarge is the fault of a head of which not all is read.
const headTooLarge = "http_response_header_section_size"

// headFault says what was wrong with the head of an answer. net/http has no
// types for that: should its text change, the error is the general one.
func headFault(err error) string {
	if err != nil && strings.Contains(err.Error(), "server response headers exceeded") {
		return headTooLarge
	}
	return "http_protocol_error"
}

func broken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// wireFault says how the connection failed.
func wireFault(err error) (string, int) {
	if is[*Blocked](err) {
		return "destination_ip_prohibited", http.StatusBadGateway
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsTimeout {
			return "dns_timeout", http.StatusGatewayTimeout
		}
		return "dns_error", http.StatusBadGateway
	}
	slow := timedOut(err)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		switch {
		case slow:
			return "connection_timeout", http.StatusGatewayTimeout
		case errors.Is(err, syscall.ECONNREFUSED):
			return "connection_refused", http.StatusBadGateway
		}
		return "destination_ip_unroutable", http.StatusBadGateway
	}
	switch {
	case is[*tls.CertificateVerificationError](err), is[x509.UnknownAuthorityError](err), is[x509.HostnameError](err), is[x509.CertificateInvalidError](err):
		return "tls_certificate_error", http.StatusBadGateway
	case is[tls.AlertError](err):
		return "tls_alert_received", http.StatusBadGateway
	case is[tls.RecordHeaderError](err):
		return "tls_protocol_error", http.StatusBadGateway
	case slow:
		return "http_response_timeout", http.StatusGatewayTimeout
	case errors.Is(err, io.ErrUnexpectedEOF): // within the head
		return "http_response_incomplete", http.StatusBadGateway
	case broken(err):
		return "connection_terminated", http.StatusBadGateway
	}
	return "", 0
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}
