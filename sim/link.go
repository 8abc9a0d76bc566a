package sim

import "strings"

// Link is a path of the pack as it stands behind the host: with the case and
// the name of the pack before it where the request had them. Who follows it
// stays in the case.
func (x *Exchange) Link(path string) string {
	asked := x.Request.URL.Path
	before, ok := strings.CutSuffix(asked, x.Path)
	if !ok { // the name of the pack was all that followed the case: its root is /t/CASE/NAME
		before = strings.TrimSuffix(asked, "/")
		if path == "/" {
			return asked
		}
	}
	return before + path
}

// URL is the address of a path of the pack, as the caller reaches it. Every
// link in a body or a header is made by it.
func (x *Exchange) URL(path string) string {
	scheme := "http://"
	if x.Request.TLS != nil {
		scheme = "https://"
	}
	return scheme + x.Request.Host + x.Link(path)
}

// located is the value of a Location: one that begins with a slash is a path
// of the pack.
func (x *Exchange) located(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.HasPrefix(to, x.Link("")+"/") && x.Link("") != "" {
		return to
	}
	return x.Link(to)
}
