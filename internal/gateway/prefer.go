package gateway

import (
	"strconv"
	"strings"
	"time"
)

// preferWait reads the preference wait out of Prefer lines (RFC 7240 §4.3).
// The first of several counts, as the RFC says, also when it cannot be read:
// what cannot be understood is ignored. A parameter of another preference that
// is called wait is not the preference.
func preferWait(lines []string) (time.Duration, bool) {
	for _, line := range lines {
		for member := range splitQuoted(line, ',') {
			preference := member
			for part := range splitQuoted(member, ';') {
				preference = part
				break
			}
			name, value, has := strings.Cut(preference, "=")
			if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
				continue
			}
			if !has {
				return 0, false
			}
			return seconds(unquote(strings.Trim(value, " \t")))
		}
	}
	return 0, false
}

// seconds reads delta-seconds. Zero is no time to work in, and so no wait.
func seconds(s string) (time.Duration, bool) {
	if s == "" || len(s) > 15 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n == 0 {
		return 0, false
	}
	return time.Duration(min(n, int64(maxBudget/time.Second))) * time.Second, true
}

// splitQuoted yields the parts of s between separators outside quoted strings.
func splitQuoted(s string, sep byte) func(func(string) bool) {
	return func(yield func(string) bool) {
		start, quoted := 0, false
		for i := 0; i < len(s); i++ {
			switch c := s[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case c == sep && !quoted:
				if !yield(s[start:i]) {
					return
				}
				start = i + 1
			}
		}
		yield(s[start:])
	}
}

// unquote returns the text of a quoted string, or s where it is none.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// preference is what Prefer says about time.
type preference struct {
	async bool
	waits bool // wait was given
	wait  time.Duration
}

// preferAsync reads respond-async and wait out of Prefer lines. With
// respond-async, a wait of zero is none.
func preferAsync(lines []string) (p preference) {
	var async, wait bool // seen: the first of several counts
	for name, value := range preferences(lines) {
		switch name {
		case "respond-async":
			if !async {
				async, p.async = true, value == ""
			}
		case "wait":
			if !wait {
				wait = true
				if p.wait, p.waits = seconds(value); value != "" && strings.Trim(value, "0") == "" {
					p.waits = true
				}
			}
		}
	}
	return p
}

// preferences yields the names, in lower case, and the values of Prefer lines.
func preferences(lines []string) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for _, line := range lines {
			for member := range splitQuoted(line, ',') {
				first := member
				for part := range splitQuoted(member, ';') {
					first = part
					break
				}
				name, value, _ := strings.Cut(first, "=")
				if !yield(strings.ToLower(strings.Trim(name, " \t")), unquote(strings.Trim(value, " \t"))) {
					return
				}
			}
		}
	}
}

// withoutAsync returns the preferences that are left for the provider when
// heed has taken respond-async and wait for itself. nil: none.
func withoutAsync(lines []string) []string {
	var kept []string
	for _, line := range lines {
		for member := range splitQuoted(line, ',') {
			for name := range preferences([]string{member}) {
				if name != "respond-async" && name != "wait" && name != "" {
					kept = append(kept, strings.Trim(member, " \t"))
				}
			}
		}
	}
	if kept == nil {
		return nil
	}
	return []string{strings.Join(kept, ", ")}
}
