package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/internal/app"
)

// watch follows one call: it tells a person at the terminal what the call
// waits for and how much has arrived, and remembers when the server said that
// trying again makes sense.
type watch struct {
	sh    *shell
	tell  bool
	write bool // sending it again might do it twice
	bytes int64
	last  byte // of the body

	mu     sync.Mutex
	again  time.Time
	doubts []doubt
	shown  time.Time // when the last count of bytes was
	open   bool      // a count stands on the current line
}

func newWatch(sh *shell, progress string) *watch {
	w := &watch{sh: sh, tell: progress == "always"}
	if f, ok := sh.err.(*os.File); ok && progress == "auto" {
		w.tell = term.IsTerminal(int(f.Fd()))
	}
	return w
}

// observe is told every step of the call.
func (w *watch) observe(e heed.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case heed.AttemptDone:
		w.again = time.Time{}
		if e.HasRetry {
			w.again = e.Time.Add(e.RetryAfter)
		}
		if e.Retry {
			w.line("attempt %d: %s; next in %s (%s)", e.Attempt, outcome(e), round(e.Delay), e.WaitSource)
		}
	case heed.WaitBegun:
		w.line("waiting %s before attempt %d (%s)", round(e.Delay), e.Attempt+1, e.WaitSource)
	case heed.BreakerChanged:
		w.line("the breaker is %s", e.Breaker)
	}
}

// doubt is an unverified fact that the call acted on.
type doubt struct {
	Fact  string `json:"fact"`
	Grade string `json:"grade"`
}

// String names it for people.
func (d doubt) String() string {
	if d.Fact == "limits" {
		return "the limits of the profile"
	}
	return d.Fact
}

// doubt is told of one, once.
func (w *watch) doubt(d app.Doubt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.doubts = append(w.doubts, doubt{d.Fact, string(d.Grade)})
}

// sayDoubts tells people what the call acted on.
func (w *watch) sayDoubts() {
	for _, d := range w.doubts {
		w.sh.say("heed: warning: the call acted on %s, which nobody has verified (grade %s); compare it with the provider's documentation, then write it into heed.yaml with its source", d, d.Grade)
	}
}

func outcome(e heed.Event) string {
	if e.Status == 0 {
		return "no answer, " + e.Class.String()
	}
	return fmt.Sprintf("%d, %s", e.Status, e.Class)
}

// round keeps what a person reads of d.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// line writes one line for people, below a count that may stand there.
func (w *watch) line(format string, args ...any) {
	if !w.tell {
		return
	}
	w.endLine()
	w.sh.say(format, args...)
}

func (w *watch) endLine() {
	if w.open {
		fmt.Fprintln(w.sh.err)
		w.open = false
	}
}

// Write counts what has arrived, and shows the count once a second for bodies
// that take longer than that.
func (w *watch) Write(p []byte) (int, error) {
	if w.bytes += int64(len(p)); len(p) > 0 {
		w.last = p[len(p)-1]
	}
	if !w.tell {
		return len(p), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.shown.IsZero() {
		w.shown = now
	}
	if now.Sub(w.shown) >= time.Second {
		w.shown, w.open = now, true
		fmt.Fprintf(w.sh.err, "\r%.1f MiB", float64(w.bytes)/(1<<20))
	}
	return len(p), nil
}

// retryAt is when the server said, with its last answer, that trying again
// makes sense; nil when it did not.
func (w *watch) retryAt() *time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.again.IsZero() {
		return nil
	}
	return whole(w.again)
}

// newline begins a new line where the body has just gone to the same terminal
// or file without ending its own. The body on stdout stays as it came.
func (w *watch) newline() {
	if w.bytes > 0 && w.last != '\n' && same(w.sh.out, w.sh.err) {
		fmt.Fprintln(w.sh.err)
	}
}

// same tells whether two streams end up in the same place.
func same(a, b io.Writer) bool {
	fa, ok := a.(*os.File)
	fb, also := b.(*os.File)
	if !ok || !also {
		return false
	}
	ia, err := fa.Stat()
	if err != nil {
		return false
	}
	ib, err := fb.Stat()
	return err == nil && os.SameFile(ia, ib)
}

// close ends the line of the count.
func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endLine()
}
