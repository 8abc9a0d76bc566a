package heed

import (
	"net/http"
	"runtime"
)

// guarded is the body of an answer whose slot would be missed. A caller who
// lets go of it without Close gives the slot and the connection back when the
// garbage collector finds it, and the end of the call says so. Nobody but the
// caller holds it: the HTTP stack holds on to what is in it.
//
// To guard every body would cost a call a third more, so that up to half of the
// slots can be lost for good.
type guarded struct{ *trip }

// guarding returns resp with a guarded body. It is a copy, as whoever made resp
// may hold on to it.
func guarding(resp *http.Response, t *trip) *http.Response {
	g := &guarded{t}
	runtime.AddCleanup(g, abandon, t)
	guarded := *resp
	guarded.Body = g
	return &guarded
}

// abandon ends a call whose body nobody can close any more.
func abandon(t *trip) {
	if !t.ended.CompareAndSwap(false, true) {
		return
	}
	go func() { // Close may take its time, and all cleanups wait for this one
		t.rest.Close()
		t.end(Abandoned)
	}()
}
