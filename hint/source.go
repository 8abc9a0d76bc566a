package hint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heedproject/heed/policy"
)

// times are the formats that hold a time.
var times = []Format{
	Seconds, Millis, EpochSeconds, EpochMillis, ISO8601, HTTPDate, GoDuration, ProtoDuration, RetryAfter, KeyValue,
}

// fits lists the formats that can hold a field.
var fits = map[Field][]Format{
	Wait:      times,
	Reset:     times,
	Window:    {Seconds, Millis, GoDuration, ProtoDuration, Number, KeyValue},
	Remaining: {Number, KeyValue},
	Limit:     {Number, KeyValue},
	Used:      {Number, KeyValue},
	Quota:     {KeyValue, UsedTotal, Structured},
}

// problems lists what is wrong with the i-th source.
func (s Source) problems(i int) []policy.Problem {
	var ps []policy.Problem
	add := func(field, remedy, format string, args ...any) {
		ps = append(ps, policy.Problem{
			Path: fmt.Sprintf("hints[%d].%s", i, field), Message: fmt.Sprintf(format, args...), Remedy: remedy,
		})
	}
	switch {
	case s.Header == "":
		add("header", "name the header, such as X-RateLimit-Reset", "no header is named")
	case strings.IndexFunc(s.Header, func(r rune) bool { return r >= 0x80 || !isNameByte(byte(r)) }) >= 0:
		add("header", "write the name alone, without colon or spaces", "%q is not the name of a header", s.Header)
	}
	formats, known := fits[s.Field]
	switch {
	case !known:
		add("field", "use one of wait, remaining, limit, reset, used, window, quota", "%q is not known", string(s.Field))
	case !slices.Contains(formats, s.Format):
		add("format", "use one of "+list(formats), "%q cannot hold %s", string(s.Format), s.Field)
	case s.Format == KeyValue && s.Key == "" && s.Field != Quota:
		add("key", "name the member, such as remaining", "a single field of a key_value list is asked for without its key")
	}
	if s.Key != "" && s.Format != KeyValue && s.Format != UsedTotal {
		add("key", "leave it out, or use the format key_value", "%q has no members", string(s.Format))
	}
	return ps
}

// isNameByte tells what a header name is made of (RFC 9110 §5.6.2).
func isNameByte(c byte) bool {
	return isAlpha(c) || isDigit(c) || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}

func list(formats []Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
