package sim

// serveEnvelope answers 200 with an error in the body, as APIs do whose
// gateway sets the status. Nothing happened.
func serveEnvelope(x *exchange) {
	x.write(object(200, struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}{"-1", "the request was not processed, try again later"}))
}
