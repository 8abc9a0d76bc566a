package sim

import "net/http"

// serveCommitThen does the work, and a proxy in between answers with a status
// of its own, in HTML: the client cannot know whether it was done.
func serveCommitThen(x *Exchange, status int) {
	if an := x.operate(); an.Status >= 400 {
		x.write(an) // nothing was done that the answer could hide
		return
	}
	text := http.StatusText(status)
	x.write(Text(status, "text/html", "<html><head><title>"+text+"</title></head><body><h1>"+text+"</h1></body></html>\n"))
}
