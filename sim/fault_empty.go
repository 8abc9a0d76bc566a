package sim

// serveEmpty answers 200 and promises JSON, but the body is empty.
func serveEmpty(x *exchange) { x.write(answer{status: 200}) }
