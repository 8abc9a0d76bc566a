package sim

import (
	"mime"
	"strings"
)

// serveWrongType gives the true answer under another media type: the text in
// parentheses, default text/html.
func serveWrongType(x *Exchange) {
	an := x.operate()
	media := x.step.said
	if media == "" {
		media = "text/html"
	}
	an.Set("Content-Type", media)
	x.write(an)
}

func isMedia(text string) (message, remedy string) {
	media, _, err := mime.ParseMediaType(text)
	if kind, sub, ok := strings.Cut(media, "/"); err == nil && ok && kind != "" && sub != "" {
		return "", ""
	}
	return "the text in parentheses is no media type", "write one such as wrong-type(text/plain)"
}
