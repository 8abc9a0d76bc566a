package check

import (
	"testing"
	"testing/synctest"
	"time"
)

// waited is how long a program is waited for that sends its first request after
// so long, when so many before it were mute, and requests were seen of some.
func waited(t *testing.T, first time.Duration, mute, seen int64) (d time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := &guard{}
		s := &stage{guards: map[string]*guard{"one": g}}
		s.mute.Store(mute)
		s.seen.Store(seen)
		time.AfterFunc(first, func() { g.seen.Add(1) })
		began := time.Now()
		s.awaits(Place{Case: "one"}, nil)
		d = time.Since(began)
		synctest.Wait()
		time.Sleep(max(0, first-d)) // the program still comes
	})
	return d.Round(100 * time.Millisecond)
}

func TestAProgramThatStartsSlowlyIsWaitedForAlthoughOthersDid(t *testing.T) {
	if got := waited(t, 8*time.Second, mostStarts, 1); got != 8*time.Second {
		t.Errorf("got %v, want it to be waited for until its request came", got)
	}
}

func TestProgramsOfWhichNothingWasEverSeenAreSoonNotWaitedFor(t *testing.T) {
	if got := waited(t, time.Minute, mostStarts, 0); got != 100*time.Millisecond {
		t.Errorf("got %v, want no long wait for a program that sends nothing", got)
	}
}

func TestProgramsThatHangAreNotWaitedForPatientlyForever(t *testing.T) {
	if got := waited(t, time.Minute, mostMute, 1); got != 3*time.Second {
		t.Errorf("got %v, want a run with a client that hangs to end", got)
	}
}
