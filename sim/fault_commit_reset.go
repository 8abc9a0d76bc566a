package sim

// serveCommitThenReset does the work and then loses the answer: the client
// cannot know whether it was done.
func serveCommitThenReset(x *Exchange) {
	x.operate()
	serveReset(x)
}
