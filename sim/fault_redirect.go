package sim

import (
	"net/url"
	"strings"
)

// serveRedirect sends the caller to another host: 307 to the URL in
// parentheses, or to a path of the pack, default a host that does not exist. Nothing happened.
func serveRedirect(x *Exchange) {
	to := x.step.said
	if to == "" {
		to = "http://moved.invalid" + x.Request.URL.EscapedPath()
	}
	x.write(Answer{Status: 307, Fields: [][2]string{{"Location", to}}})
}

func isAddress(text string) (message, remedy string) {
	u, err := url.Parse(text)
	if err == nil && (u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") || u.Scheme == "" && strings.HasPrefix(text, "/")) {
		return "", ""
	}
	return "the text in parentheses is no URL", "write one such as redirect(http://other.example/), or a path such as redirect(/v1/moved)"
}
