package mask

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// masked stands for something that may not be told.
const masked = "[masked]"

// maxError bounds what is told of an error, in bytes.
const maxError = 300

// Error returns what may be told of err: its text without user, query and
// identifiers of a URL, without quoted content of an answer, and without any
// word that looks like a credential or a record number. It is bounded.
func Error(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if ue, ok := errors.AsType[*url.Error](err); ok {
		text = maskURLError(text, ue)
	}
	return bounded(words(clipped(text)), maxError)
}

// maxText bounds what is looked at of an error, in bytes.
const maxText = 4 << 10

// clipped cuts text between two words: half a secret may look harmless.
func clipped(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:max(strings.LastIndexAny(text[:maxText], gaps), 0)]
}

// maskURLError replaces the URL of ue in text. A URL that could not be parsed
// is told not at all, and neither is the reason, which quotes parts of it.
func maskURLError(text string, ue *url.Error) string {
	if ue.Op == "parse" {
		return strings.ReplaceAll(text, ue.Error(), "parse: the URL is not valid")
	}
	shown := masked
	if u, err := url.Parse(ue.URL); err == nil {
		shown = URL(u)
	}
	text = strings.ReplaceAll(text, strconv.Quote(ue.URL), strconv.Quote(shown))
	if ue.URL != "" {
		text = strings.ReplaceAll(text, ue.URL, shown)
	}
	return text
}

// bounded cuts s to at most n bytes, at the end of a character.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n -= len("…"); n > 0 && !utf8.RuneStart(s[n]); n-- {
	}
	return s[:n] + "…"
}

// words shows text word by word: what is known to be harmless stays, what
// follows the name of a credential goes.
func words(text string) string {
	var b strings.Builder
	last := ""
	for text != "" {
		if n := gapLen(text); n > 0 {
			b.WriteString(oneLine.Replace(text[:n]))
			text = text[n:]
			continue
		}
		if text[0] == '"' || text[0] == '`' {
			n := quotedLen(text)
			b.WriteString(quoted(text[:n], last))
			last, text = strings.Trim(text[:n], "\"`"), text[n:]
			continue
		}
		n := wordLen(text)
		w := text[:n]
		text = text[n:]
		switch {
		case hidesRest(w):
			b.WriteString(w + " " + masked)
			return b.String()
		case w == ":" && isKey(last): // "token": "x"
			b.WriteString(w)
			last += ":"
			continue
		case announces(last) && !isScheme(w):
			b.WriteString(masked)
			w = ""
		default:
			b.WriteString(wordOf(w))
		}
		last = w
	}
	return b.String()
}

const gaps = " \t\r\n()<,;{}'"

func gapLen(s string) int {
	return len(s) - len(strings.TrimLeft(s, gaps))
}

func wordLen(s string) int {
	if i := strings.IndexAny(s, gaps+"\"`"); i > 0 {
		return i
	}
	return len(s)
}

// oneLine turns the line breaks between joined errors into semicolons.
var oneLine = strings.NewReplacer("\n", "; ", "\r", " ", "\t", " ")

// quotedLen is the length of the quoted string that s begins with, or of s if
// it does not end.
func quotedLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] == '"':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return len(s)
}

// quoted shows a quoted URL or host, and the name of a scheme or method. All
// else that is quoted is what somebody sent.
func quoted(s, last string) string {
	inner := strings.Trim(s, "\"`")
	switch {
	case inner == "", inner == masked:
	case announces(last), strings.HasPrefix(inner, "//"):
		inner = masked
	case strings.Contains(inner, "://"):
		inner = inText(inner)
	case strings.ContainsAny(inner, gaps+`\"`):
		inner = masked
	case isAddress(inner):
	case strings.HasPrefix(inner, "/"):
		inner = Template(inner)
	case (last == "scheme" || last == "method") && isWord(inner):
	default:
		inner = masked
	}
	return `"` + inner + `"`
}

// keys are the names that a credential or a person's data stands behind.
var keys = []string{
	"token", "secret", "password", "passwd", "passphrase", "pwd", "apikey", "api_key", "api-key", "key", "auth",
	"authorization", "bearer", "basic", "signature", "sig", "session", "sessionid", "sid", "cookie", "code",
	"credential", "credentials", "user", "username", "login", "pin", "barcode", "email", "patron",
}

// announces tells that the next word is a secret: Bearer x, token: x, key= x.
// A word of the list without colon is a word of the language.
func announces(w string) bool {
	name, marked := strings.CutSuffix(w, ":")
	if !marked {
		name, marked = strings.CutSuffix(w, "=")
	}
	return isScheme(w) || marked && isKey(name)
}

func isScheme(w string) bool {
	return strings.EqualFold(w, "bearer") || strings.EqualFold(w, "basic") || strings.EqualFold(w, "apikey")
}

func isKey(name string) bool {
	name = strings.ToLower(name)
	for _, k := range keys {
		if name == k || strings.HasSuffix(name, "_"+k) || strings.HasSuffix(name, "-"+k) {
			return true
		}
	}
	return false
}

// hidesRest tells the beginnings of a header line, whose value has spaces.
func hidesRest(w string) bool {
	switch strings.ToLower(w) {
	case "cookie:", "set-cookie:", "authorization:", "proxy-authorization:", "line:":
		return true // net/textproto: malformed MIME header line: ...
	}
	return false
}

// wordOf shows one word.
func wordOf(w string) string {
	core := strings.TrimRight(w, ":.!=")
	tail := w[len(core):]
	if name, v, ok := strings.Cut(core, "="); ok && v != "" && !strings.Contains(name, "/") {
		if isKey(name) {
			return name + "=" + masked + tail
		}
		return wordOf(name) + "=" + wordOf(v) + tail
	}
	switch {
	case core == "":
		return w
	case strings.Contains(core, "://"):
		return inText(core) + tail
	case strings.ContainsAny(core, "@%?#&\\"):
		return masked + tail
	case isHarmless(core):
		return w
	case strings.Contains(core, "/") && !isAddress(core):
		return Template(core) + tail
	}
	return masked + tail
}

// inText shows a URL that stands in a text. Who wrote the text is not known, so
// that even the host must look like one.
func inText(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" {
		return masked
	}
	if h := strings.ToLower(u.Host); !isAddress(h) && !isWord(u.Hostname()) {
		u.Host = masked
	}
	return URL(u)
}

// isHarmless tells words of the language, small numbers, durations, dates,
// versions of protocols and addresses.
func isHarmless(w string) bool {
	lower := strings.ToLower(w)
	switch {
	case spoken[lower], isAddress(w), isNetwork(w), isProtocol(lower):
		return true
	case strings.ContainsAny(w, "0123456789"):
		return isSmall(w) || isInstant(w)
	}
	return isText(w)
}

// isText tells a word without digits from a token of letters.
func isText(w string) bool {
	if len(w) > 2*maxWord || strings.Contains(w, ":") {
		return false // name:password has a colon too
	}
	for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return strings.ContainsRune("-_./*+~|!^$[]", r) }) {
		if !isWord(part) {
			return false
		}
	}
	return true
}

// isSmall tells a number of up to five digits, or a duration.
func isSmall(w string) bool {
	if _, err := time.ParseDuration(w); err == nil {
		return len(w) <= 20
	}
	digits := strings.Trim(strings.TrimSuffix(w, "%"), "0123456789")
	return len(w) <= 5 && strings.Trim(digits, ".x-") == ""
}

// isInstant tells dates and times, whose numbers have at most four digits.
func isInstant(w string) bool {
	run := 0
	for _, c := range []byte(w) {
		if '0' <= c && c <= '9' {
			if run++; run > 4 {
				return false
			}
			continue
		}
		if run = 0; strings.IndexByte("-:.TZ+", c) < 0 {
			return false
		}
	}
	return strings.Count(w, ":") >= 1 && len(w) <= 35 || strings.Count(w, "-") == 2 && len(w) == 10
}

// isProtocol tells http/1.1, tls1.2, tlsv1.3, sha-256 and the like.
func isProtocol(w string) bool {
	for _, name := range []string{"http/", "tlsv", "tls", "sslv", "ssl", "sha-", "utf-", "rsa-", "pkcs", "max-age="} {
		if rest, ok := strings.CutPrefix(w, name); ok {
			return rest != "" && len(rest) <= 5 && strings.Trim(rest, "0123456789.x") == ""
		}
	}
	return false
}

// isAddress tells 127.0.0.1:443, [::1]:80, 10.0.0.1->10.0.0.2 and host names.
func isAddress(w string) bool {
	if from, to, ok := strings.Cut(w, "->"); ok {
		return isAddress(from) && isAddress(to)
	}
	name := w
	if i := strings.LastIndexByte(w, ':'); i > 0 && strings.Trim(w[i+1:], "0123456789") == "" && len(w)-i <= 6 {
		name = w[:i]
	}
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") || strings.Count(name, ":") >= 2 {
		return len(name) <= 41 && strings.Trim(name, "[]0123456789abcdefABCDEF:.") == ""
	}
	if name == "localhost" {
		return true
	}
	return isHostName(name)
}

// isNetwork tells [127.0.0.1/32] and [fd00::/8]: a range in the form in which
// heed.yaml lists it, which is what a refusal to dial asks to be written.
func isNetwork(w string) bool {
	inner, opens := strings.CutPrefix(w, "[")
	inner, closes := strings.CutSuffix(inner, "]")
	if !opens || !closes {
		return false
	}
	_, err := netip.ParsePrefix(inner)
	return err == nil
}

// isHostName tells a dotted quad or a name in lower case with a dot and
// labels that are not tokens. Only the first label may have digits, and few:
// a JSON web token has dots too.
func isHostName(s string) bool {
	labels := strings.Split(s, ".")
	if len(labels) < 2 {
		return false
	}
	numbers := 0
	for i, l := range labels {
		switch {
		case l == "" || len(l) > maxWord || l != strings.ToLower(l):
			return false
		case strings.Trim(l, "0123456789") == "" && len(l) <= 3:
			numbers++
		case strings.Trim(l, "abcdefghijklmnopqrstuvwxyz-") == "":
		case i < len(labels)-1 && len(l) <= 16 && longestRun(l) <= 3 && strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-") == "":
		default:
			return false
		}
	}
	return numbers == 0 || numbers == 4 && len(labels) == 4
}

// longestRun is the length of the longest run of digits.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if run++; s[i] < '0' || s[i] > '9' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
