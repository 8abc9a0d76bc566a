package mask

import (
	"net/http"
	"net/url"
	"strings"
)

// maxValue bounds what is shown of a header value, in bytes.
const maxValue = 200

// open are the headers whose values say nothing of a person or a credential.
var open = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Accept-Ranges": true, "Age": true, "Allow": true,
	"Cache-Control": true, "Cache-Status": true, "Connection": true, "Content-Encoding": true,
	"Content-Length": true, "Content-Type": true, "Date": true, "Expires": true, "Last-Modified": true,
	"Proxy-Status": true, "Retry-After": true, "Server": true, "Transfer-Encoding": true, "Vary": true,
	"Via": true, "X-Cache": true, "X-Exl-Api-Remaining": true, "X-Shopify-Shop-Api-Call-Limit": true,
}

// Header returns a copy of h to be shown: all names, and the values that are
// known to be harmless. Links keep host and path template, what tells of
// quota stays, all else is masked.
func Header(h http.Header) http.Header {
	out := make(http.Header, len(h))
	for name, values := range h {
		shown := make([]string, len(values))
		for i, v := range values {
			shown[i] = headerValue(name, v)
		}
		out[headerName(name)] = shown
	}
	return out
}

func headerValue(name, v string) string {
	name = http.CanonicalHeaderKey(name)
	switch {
	case v == "":
		return ""
	case name == "Location" || name == "Content-Location":
		u, err := url.Parse(v)
		if err != nil {
			return masked
		}
		return URL(u)
	case name == "Content-Type" || name == "Accept":
		v, _, _ = strings.Cut(v, ";") // a boundary or profile may be anything
		return value(v)
	case open[name] || isQuota(name):
		return value(v)
	}
	return masked
}

// isQuota tells X-RateLimit-Remaining and its many relatives.
func isQuota(name string) bool {
	s := strings.ReplaceAll(strings.ToLower(name), "rate-limit", "ratelimit")
	if strings.HasPrefix(s, "retry-after") {
		return true
	}
	_, rest, ok := strings.Cut(s, "ratelimit")
	for part := range strings.SplitSeq(rest, "-") {
		switch part {
		case "", "limit", "remaining", "reset", "used", "after", "policy", "interval", "requests", "tokens", "input",
			"output", "minute", "hour", "day", "daily", "secondly", "max", "window":
		default:
			return false
		}
	}
	return ok
}

// value shows v if all that stands in it is words, numbers and what begins
// with a number, such as 6m0s. The partition key of RateLimit (pk) is made
// from the credential.
func value(v string) string {
	if strings.Contains(v, "pk=") {
		return masked
	}
	for run := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune(" \t\"',;:=+-_./*()", r) }) {
		letters := strings.Trim(run, "0123456789")
		switch {
		case letters == "" && len(run) <= 15, letters == run && isWord(run):
		case run[0] >= '0' && run[0] <= '9' && len(run) <= 8 && isWord(strings.Map(lettersOnly, run)):
		default:
			return masked
		}
	}
	return bounded(v, maxValue)
}

func lettersOnly(r rune) rune {
	if '0' <= r && r <= '9' {
		return -1
	}
	return r
}

// headerName keeps a name that is one.
func headerName(name string) string {
	if len(name) > 64 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return masked
	}
	return name
}
