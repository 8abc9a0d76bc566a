package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
)

// transport makes k tell how the last attempt failed that got no answer, in
// the words and with the status that RFC 9209 §2.3 recommends.
func (k *kind) transport(err error) {
	if err == nil {
		return
	}
	if fault, status := faultOf(err); fault != "" {
		k.fault, k.status = fault, status
	}
}

func faultOf(err error) (string, int) {
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
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
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
