package gateway

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed"
)

// Bounds of what a caller may say about a call.
const (
	maxBudget   = 100 * 365 * 24 * time.Hour
	maxWord     = 128 // of a tenant or a correlation id, in bytes
	maxFields   = 256 // names in a request header
	midPriority = 5
)

// badHeader is a request field that cannot be used.
type badHeader struct{ name, want string }

// asked is what a caller said about a call.
type asked struct {
	heed.Call
	preferred bool // Budget came from Prefer
}

// readOptions reads the fields that concern heed out of h. Those that the
// gateway answers for are removed with the other Heed-* fields later.
func (rt *route) readOptions(h http.Header) (asked, *badHeader) {
	a := asked{Call: heed.Call{Priority: midPriority}}
	for k, lines := range h {
		if !strings.HasPrefix(k, "Heed-") {
			continue
		}
		if want := a.set(k, lines); want != "" {
			return a, &badHeader{k, want}
		}
	}
	if a.Budget == 0 {
		if lines := h["Prefer"]; lines != nil {
			a.Budget, a.preferred = preferWait(lines)
		}
	}
	if lines, ok := h["Idempotency-Key"]; ok && rt.keyed {
		key, ok := readKey(lines, rt.keyMax)
		if !ok {
			return a, &badHeader{"Idempotency-Key", "one key of 1 to " + strconv.Itoa(rt.keyMax) + " visible ASCII characters"}
		}
		a.Key = key
		delete(h, "Idempotency-Key")
	}
	return a, nil
}

// set takes one Heed-* field. It returns what is wanted of the field when the
// value is something else.
func (a *asked) set(name string, lines []string) string {
	if len(lines) != 1 {
		return "one line"
	}
	v, ok := strings.Trim(lines[0], " \t"), true
	var want string
	switch name {
	case "Heed-Budget":
		a.Budget, ok = readBudget(v)
		want = "a positive duration such as 90s, or a number of seconds"
	case "Heed-Retry":
		a.RetryOff, ok = v == "off", v == "off" || v == "on"
		want = "off or on"
	case "Heed-Attempt": // an inner heed retries: one place decides
		a.RetryOff = true
	case "Heed-Priority":
		if ok = len(v) == 1 && v[0] >= '0' && v[0] <= '9'; ok {
			a.Priority = int(v[0] - '0')
		}
		want = "a digit from 0 to 9"
	case "Heed-Tenant":
		a.Tenant, ok = v, word(v)
		want = "1 to 128 visible ASCII characters"
	case "Heed-Correlation-Id":
		a.CorrelationID, ok = v, word(v)
		want = "1 to 128 visible ASCII characters"
	case "Heed-Not-Before":
		a.NotBefore, ok = readInstant(v, time.Now())
		want = "an RFC 3339 time, or a number of seconds from now"
	}
	if ok {
		return ""
	}
	return want
}

// word tells whether v may go into logs as it is.
func word(v string) bool {
	if v == "" || len(v) > maxWord {
		return false
	}
	for i := 0; i < len(v); i++ {
		if v[i] < ' ' || v[i] > '~' {
			return false
		}
	}
	return true
}

// readBudget reads 90s, 1m30s, 90 or 1.5.
func readBudget(v string) (time.Duration, bool) {
	if d, ok := number(v); ok {
		return d, d > 0
	}
	d, err := time.ParseDuration(v)
	return min(d, maxBudget), err == nil && d > 0
}

// number reads decimal seconds by the plain grammar: digits, and a fraction if
// need be. No sign, no exponent, nothing that only Go understands.
func number(v string) (time.Duration, bool) {
	whole, fraction, dotted := strings.Cut(v, ".")
	if whole == "" || strings.Trim(v, "0123456789.") != "" || dotted && strings.Trim(fraction, "0123456789") != "" || len(v) > 32 {
		return 0, false
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(f, maxBudget.Seconds()) * float64(time.Second)), true
}

func readInstant(v string, now time.Time) (time.Time, bool) {
	if d, ok := number(v); ok {
		return now.Add(d), true
	}
	t, err := time.Parse(time.RFC3339, v)
	return t, err == nil
}

// readKey reads an idempotency key. The IETF draft wants a quoted string, many
// APIs a bare one: the key is what is between the quotes.
func readKey(lines []string, limit int) (string, bool) {
	if len(lines) != 1 {
		return "", false
	}
	key := unquote(strings.Trim(lines[0], " \t"))
	if key == "" || len(key) > limit {
		return "", false
	}
	for i := 0; i < len(key); i++ {
		if key[i] <= ' ' || key[i] > '~' {
			return "", false
		}
	}
	return key, true
}
