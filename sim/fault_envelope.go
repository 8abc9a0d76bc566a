package sim

// serveEnvelope answers 200 with an error in the body, as APIs do whose
// gateway sets the status. Nothing happened.
func serveEnvelope(x *Exchange) {
	if f := x.pack.Dialect.Envelope; f != nil {
		x.write(f(x))
		return
	}
	x.write(JSON(200, struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{"-1", "the request was not processed, try again later"}))
}
