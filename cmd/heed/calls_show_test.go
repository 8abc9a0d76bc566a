package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

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
