package sim

// serveRedirect sends the caller to another host: 307 to the URL in
// parentheses, default a host that does not exist. Nothing happened.
func serveRedirect(x *Exchange) {
	to := x.step.said
	if to == "" {
		to = "http://moved.invalid" + x.Request.URL.EscapedPath()
	}
	x.write(Answer{Status: 307, Fields: [][2]string{{"Location", to}}})
}
