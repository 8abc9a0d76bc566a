package heed

import (
	"net/http"
	"runtime"
)

// guarded is the body of an answer whose slot would be missed. A caller who
// lets go of it without Close gives the slot and the connection back when the
// garbage collector finds it, and the end of the call says so. It is apart from
// the trip because the HTTP stack holds on to that: only the caller holds this.
//
// Not every body is guarded, as that would cost a call a third more; so up to
// half of the slots can still be lost for good.
type guarded struct{ *trip }

// guarding returns resp with a guarded body. It is a copy, as whoever made resp
// may hold on to it.
func guarding(resp *http.Response, t *trip) *http.Response {
	body := &guarded{t}
	runtime.AddCleanup(body, abandon, t)
	out := *resp
	out.Body = body
	return &out
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
