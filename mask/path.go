package mask

import (
	"net/url"
	"strings"
)

const (
	// id stands for a segment that carries an identifier.
	id = "{id}"
	// maxSegments bounds a template, so that a crawl of deep paths makes no
	// endless set of metric labels.
	maxSegments = 16
	// maxWord is the longest segment or part of one that is taken for words;
	// the longest name of a resource known to the profiles has 26 letters.
	maxWord = 32
	// maxRun is the longest run of letters that is taken for one word.
	maxRun = 26
)

// spoken are words with a digit in them that name something public.
var spoken = map[string]bool{
	"oauth2": true, "s3": true, "ec2": true, "k8s": true, "i18n": true, "l10n": true, "web3": true,
	"md5": true, "sha1": true, "sha256": true, "base64": true, "mp3": true, "mp4": true, "x509": true,
	"http2": true, "http3": true, "h2": true, "h2c": true, "ipv4": true, "ipv6": true, "utf8": true,
	"tcp4": true, "tcp6": true, "udp4": true, "udp6": true, "ip4": true, "ip6": true,
}

// Template returns path with every segment that may carry an identifier
// replaced by {id}: digits, UUIDs, tokens, e-mail addresses, record numbers
// such as .b1234567a, anything percent-encoded. Plain words and versions (v6,
// v1.1) stay. A query or fragment is cut off.
func Template(path string) string {
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	var b strings.Builder
	segments := 0
	masked := false
	for start := 0; start <= len(path); {
		end := start + strings.IndexByte(path[start:], '/')
		if end < start {
			end = len(path)
		}
		seg := path[start:end]
		if segments++; segments > maxSegments+1 {
			if !masked {
				b.WriteString(path[:start])
			}
			return b.String() + "…"
		}
		if !isWord(seg) {
			if !masked {
				b.WriteString(path[:start])
				masked = true
			}
			seg = id
		}
		if masked {
			b.WriteString(seg)
			if end < len(path) {
				b.WriteByte('/')
			}
		}
		start = end + 1
	}
	if !masked {
		return path
	}
	return b.String()
}

// isWord tells whether a segment is a plain word or a version.
func isWord(seg string) bool {
	if seg == "" {
		return true
	}
	if len(seg) > maxWord {
		return false
	}
	if isVersion(seg) || spoken[seg] {
		return true
	}
	run, humps := 0, 0
	for i := range len(seg) {
		c := seg[i]
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			if run++; run > maxRun {
				return false
			}
			if i > 0 && isUpper(c) != isUpper(seg[i-1]) {
				humps++
			}
		case strings.IndexByte("-_.~$:", c) >= 0:
			run = 0
		default:
			return false
		}
	}
	return !isRandom(seg, humps)
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// isRandom tells letters of a token from words: hexadecimal ones, and those
// whose case changes far more often than in camelCase.
func isRandom(seg string, humps int) bool {
	if len(seg) < 12 {
		return false
	}
	return humps*3 > len(seg) || strings.Trim(seg, "abcdefABCDEF-") == ""
}

// isVersion tells v6, v1.1 and V2 from a record number such as v1234567.
func isVersion(seg string) bool {
	if len(seg) < 2 || len(seg) > 8 || seg[0]|0x20 != 'v' {
		return false
	}
	run := 0
	for _, c := range []byte(seg[1:]) {
		switch {
		case c == '.' && run > 0:
			run = 0
		case '0' <= c && c <= '9' && run < 3:
			run++
		default:
			return false
		}
	}
	return run > 0
}

// URL returns scheme, host and path template: no user, no query, no fragment.
func URL(u *url.URL) string {
	if u == nil {
		return ""
	}
	var b strings.Builder
	if u.Scheme != "" {
		b.WriteString(u.Scheme + ":")
	}
	if u.Opaque != "" {
		return b.String() + masked
	}
	if u.Host != "" {
		b.WriteString("//" + host(u.Host))
	}
	b.WriteString(Template(u.EscapedPath()))
	return b.String()
}

// host keeps what can be a host and port.
func host(s string) string {
	if len(s) > 253+6 { // a name of DNS and a port
		return masked
	}
	for i := range len(s) {
		if c := s[i]; !isHostByte(c) {
			return masked
		}
	}
	return s
}

func isHostByte(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-_.:[]", c) >= 0
}
