package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed"
)

func TestTheInstantOfTheNextTryIsToldOnce(t *testing.T) {
	var said bytes.Buffer
	sh := &shell{ctx: t.Context(), err: &said}
	end := &heed.Error{Method: "GET", Endpoint: "api", Reason: heed.QuotaWait, RetryAt: time.Unix(1_800_000_000, 1)}
	if err := (&callCmd{}).report(sh, nil, errors.Join(end), newWatch(sh, "never")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(said.String(), "try again at"); got != 1 {
		t.Errorf("got it %d times in %q, want once", got, said.String())
	}
	if !strings.HasSuffix(said.String(), "\ntry again at 2027-01-15T08:00:01Z\n") {
		t.Errorf("got %q, want the instant, rounded up, on the last line", said.String())
	}
	if sh.code != exitTryLater {
		t.Errorf("exit code: got %d, want %d", sh.code, exitTryLater)
	}
}
