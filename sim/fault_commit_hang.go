package sim

// serveCommitThenHang does the work and never answers; for= as in hang.
func serveCommitThenHang(x *Exchange) {
	x.operate()
	serveHang(x)
}
