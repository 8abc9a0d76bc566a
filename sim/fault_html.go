package sim

// serveHTML answers 200 with a login page, as a proxy in between does whose
// session ended. Nothing happened.
func serveHTML(x *Exchange) {
	x.write(Text(200, "text/html; charset=utf-8",
		"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Please sign in</h1></body></html>\n"))
}
