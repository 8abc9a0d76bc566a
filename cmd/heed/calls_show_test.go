package main

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/internal/queue"
)

func TestWaitsAreCountedInWords(t *testing.T) {
	for waits, want := range map[int]string{0: "2, and 0 waits of 0s in all", 1: "2, and 1 wait of 0s in all", 2: "2, and 2 waits of 0s in all"} {
		if got := (&callRow{Attempts: 2, Waits: waits}).tries(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAReasonIsNotBrokenInTheList(t *testing.T) {
	var out bytes.Buffer
	sh := &shell{env: []string{"COLUMNS=80"}, out: &out}
	now := time.Now()
	row := callRow{ID: queue.NewID(now), State: "unknown", Endpoint: "payments", Method: "POST", Path: "/charges/{id}/refunds",
		Created: now, Attempts: 1, Status: 500, Class: "transient", Reason: "not-repeatable"}
	if err := sh.callTable([]callRow{row}, nil, now); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), " not-repeatable\n") {
		t.Errorf("got\n%swant the reason in one piece", out.String())
	}
}

func TestIdsThatTheQueueMakesAreTold(t *testing.T) {
	for id, want := range map[string]bool{queue.NewID(time.Now()): true, "123": false, "": false, strings.Repeat("-", idLen): false} {
		if got := heedMade(id); got != want {
			t.Errorf("%q: got %v, want %v", id, got, want)
		}
	}
}

func TestWhatIsRevealedPlaysNoTricksWithTheTerminal(t *testing.T) {
	var out strings.Builder
	c := revealedCall{Envelope: &queue.Envelope{Method: "POST", Endpoint: "pay", Path: "/x\x1b[2J", Header: http.Header{"X-A": {"b\x1b[0m"}}, Body: []byte("\x1b[2Jgone")},
		Revisions: []queue.Envelope{{Method: "POST", Endpoint: "pay", Path: "/x", Body: []byte("päid\n\tonce\n")}}}
	if err := c.print(&out); err != nil {
		t.Fatal(err)
	}
	want := `"POST pay /x\x1b[2J"
X-A: "b\x1b[0m"

(8 bytes that are no text: --json has them, as base64)

== revision 1
POST pay /x

päid
	once
`
	if diff := cmp.Diff(out.String(), want); diff != "" {
		t.Errorf("differs (-got +want):\n%s", diff)
	}
}
