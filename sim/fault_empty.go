package sim

// serveEmpty answers 200 and promises JSON, but the body is empty. Nothing
// happened.
func serveEmpty(x *Exchange) { x.write(Answer{Status: 200}) }
