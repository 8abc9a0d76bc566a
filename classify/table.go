package classify

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/heedproject/heed/hint"
	"github.com/heedproject/heed/policy"
)

// Classify says what x meant. v says how old an answer may be; nil stands for
// its zero value. A nil Classifier knows the vendor-neutral table only.
func (c *Classifier) Classify(x *Exchange, v *policy.Verify) Verdict {
	if x.Failure == Canceled {
		return ofFailure(x)
	}
	out, ruled := Verdict{}, false
	if c != nil && len(c.rules) > 0 {
		out, ruled = c.first(x)
	}
	if !ruled {
		out = neutral(x)
	}
	if out.Class != OK {
		return c.override(x, out, ruled)
	}
	if bad, found := doubt(x, v, ruled); found {
		return bad
	}
	return out
}

// neutral is the table that stands behind all rules.
func neutral(x *Exchange) Verdict {
	if x.Failure == NoFailure || x.Status >= 400 && cutOff(x.Failure) {
		return ofStatus(x)
	}
	return ofFailure(x)
}

// cutOff tells whether f struck after the head of the answer was there.
func cutOff(f Failure) bool { return f == BodyCut || f == BodyTimeout }

func ofFailure(x *Exchange) Verdict {
	v := Verdict{Class: Transient, Retry: Idempotent, Scope: ScopeHost, Rule: x.Failure.String()}
	switch x.Failure {
	case DNSNotFound, TLSFailed:
		v.Class, v.Executed, v.Retry = Permanent, No, Never
	case BadRequest, Blocked:
		v.Class, v.Executed, v.Retry, v.Scope = Permanent, No, Never, ScopeCall
	case Unread:
		v.Scope = ScopeCall
	case DNSTemporary, Refused, ConnectTimeout:
		v.Executed, v.Retry = No, Any
	case Unwritten:
		v.Executed, v.Retry, v.Scope = No, Any, ScopeCall
	case BodyCut, BodyTimeout:
		v.Class, v.Scope = Truncated, ScopeCall
		if x.Status >= 200 && x.Status < 300 {
			v.Executed = Yes
		}
	case Canceled:
		v.Class, v.Retry, v.Scope = Unknown, Never, ScopeCall
	}
	return v
}

func ofStatus(x *Exchange) Verdict {
	switch s := x.Status; {
	case s >= 200 && s < 400, s == http.StatusSwitchingProtocols:
		return Verdict{Class: OK, Executed: Yes, Rule: "ok"} // redirects are the caller's business
	case s == 0:
		return Verdict{Rule: "no answer"}
	}
	v := Verdict{Class: Permanent, Rule: "status " + strconv.Itoa(x.Status)}
	switch s := x.Status; s {
	case http.StatusUnauthorized:
		v.Class, v.Executed, v.Retry, v.Scope = Unauthorized, No, Refresh, ScopeKey
	case http.StatusForbidden:
		v.Executed = No
		if usedUp(x) {
			v.Class, v.Retry, v.Scope = Throttled, Any, ScopeKey
		}
	case http.StatusTooManyRequests:
		v.Class, v.Executed, v.Retry, v.Scope = Throttled, No, Any, ScopeKey
	case http.StatusTooEarly:
		// RFC 8470 §5.2: the server did not process it.
		v.Class, v.Executed, v.Retry = Transient, No, Any
	case http.StatusServiceUnavailable, 529:
		v.Class, v.Retry, v.Scope = Overloaded, Idempotent, ScopeHost
		if standard(x).HasWait {
			v.Executed, v.Retry = No, Any
		}
	case http.StatusRequestTimeout, http.StatusInternalServerError:
		v.Class, v.Retry = Transient, Idempotent
	case http.StatusBadGateway, http.StatusGatewayTimeout, 520, 521, 522, 523, 524: // 52x: Cloudflare's 502 and 504
		v.Class, v.Retry, v.Scope = Transient, Idempotent, ScopeHost
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		v.Executed = No
	case 499: // nginx: the client gave up, the work may have gone on
	default:
		if s < 500 {
			v.Executed = No
		}
	}
	return v
}

// standard reads what the vendor-neutral headers say about time.
func standard(x *Exchange) hint.Hint {
	var r *hint.Reader
	return r.Read(x.Header, x.Now)
}

// usedUp tells a 403 that is a quota answer (GitHub, Google, Nominatim) from
// one that denies: it says when to come back, or that nothing remains.
func usedUp(x *Exchange) bool {
	h := standard(x)
	return h.HasWait || h.HasRemaining && h.Remaining == 0
}

// doubt looks for what speaks against an answer that looks fine.
func doubt(x *Exchange, v *policy.Verify, ruled bool) (bad Verdict, found bool) {
	if cutOff(x.Failure) {
		return ofFailure(x), true
	}
	if v != nil && v.Mode == policy.VerifyOff {
		return Verdict{}, false
	}
	if x.Peeked && ended(x) {
		if why := cutShort(x); why != "" {
			return Verdict{Class: Truncated, Executed: Yes, Retry: Idempotent, Rule: why}, true
		}
	}
	if !ruled && (x.ContentLength == 0 || x.Peeked) && hollow(x) {
		return Verdict{Class: Invalid, Retry: Idempotent, Rule: "empty body where JSON was promised"}, true
	}
	if v != nil && (v.MaxAge > 0 || v.MaxUnmodified > 0) {
		if why := stale(x, v); why != "" {
			return Verdict{Class: Stale, Executed: Yes, Retry: Revalidate, Rule: why}, true
		}
	}
	return Verdict{}, false
}

// hollow tells a 200 to a GET that promises JSON and has no body. No JSON
// document is empty, so nothing needs to be known of the provider. For other
// methods an empty JSON answer is common and fine; there a rule must ask.
func hollow(x *Exchange) bool {
	return x.Status == http.StatusOK && (x.Method == http.MethodGet || x.Method == "") &&
		kindOf(essence(x.Header)) == kindJSON && empty(x)
}

// cutShort says why a body that was seen to its end is not all of it.
func cutShort(x *Exchange) string {
	switch {
	case bodyless(x):
		return ""
	case !coded(x.Header) && int64(len(x.Body)) < x.ContentLength:
		return "body shorter than its Content-Length"
	case x.Status == http.StatusPartialContent || x.Status/100 == 3 || blank(x.Body):
		return ""
	}
	if d, known := defect(kindOf(essence(x.Header)), x.Body); known && d != nil && d.Cut {
		return "body ends unclosed"
	}
	return ""
}

// Spoiled is the verdict on an answer that was OK by its head and whose body
// made Complete return err.
func Spoiled(err error) Verdict {
	v := Verdict{Class: Truncated, Executed: Yes, Retry: Idempotent, Rule: "body ends unclosed"}
	if d, ok := errors.AsType[*Defect](err); ok && !d.Cut {
		v.Class, v.Rule = Invalid, "body is not what it claims to be"
	}
	return v
}
