package sim

// serveExpire answers as if the credential had expired early, and makes it
// invalid from now on where the pack can do that. Nothing else happened.
func serveExpire(x *Exchange) {
	if x.pack.Expire != nil {
		x.own.mu.Lock()
		x.pack.Expire(x)
		x.own.mu.Unlock()
	}
	x.refuse(Refusal{Kind: Unauthorized, Detail: "the credential has expired"})
}
