package sim

// spoilForged: the message is signed with another secret, as somebody else would.
func spoilForged(d *delivery, _ *step) { d.message.Secret = "not the secret" }
