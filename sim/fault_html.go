package sim

// serveHTML answers 200 with a login page, as a proxy in between does whose
// session ended.
func serveHTML(x *exchange) {
	an := answer{status: 200, body: []byte("<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n")}
	an.set("Content-Type", "text/html; charset=utf-8")
	x.write(an)
}
