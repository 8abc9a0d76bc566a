package observe

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a writer that takes nothing until it is let go.
type stuck struct {
	bytes.Buffer
	open chan struct{}
}

func (w *stuck) Write(p []byte) (int, error) {
	<-w.open
	return w.Buffer.Write(p)
}

func TestAFullBufferDropsLinesAndSaysHowMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{open: make(chan struct{})}
		o := start(t, Options{Log: w, Buffer: 2000})
		o.Observe(served())
		time.Sleep(time.Second) // the owner now hangs in its first write
		const sent = 100
		for range sent {
			o.Observe(served())
		}
		close(w.open)
		if err := o.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		written := strings.Count(w.String(), `"kind":"call"`)
		dropped, _ := o.sink.counts()
		if written < 2 || written-1+int(dropped) != sent {
			t.Errorf("got %d written and %d dropped of %d", written-1, dropped, sent)
		}
		if !strings.Contains(w.String(), `"level":"ERROR","msg":"log lines dropped","dropped":`) {
			t.Errorf("the log does not say that lines are missing:\n%s", w)
		}
	})
}

func TestDroppedLinesAreCountedInTheMetrics(t *testing.T) {
	o := start(t, Options{Log: &bytes.Buffer{}, Buffer: 1})
	o.Observe(served())
	o.Observe(served())
	if got, want := scrape(t, o), "heed_log_lines_dropped_total 2"; !strings.Contains(got, want) {
		t.Errorf("metrics lack %s", want)
	}
}

func TestLinesAreWrittenSoonWithoutClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := start(t, Options{Log: &out})
		o.Observe(served())
		time.Sleep(2 * linger)
		synctest.Wait()
		if out.Len() == 0 {
			t.Error("no line was written")
		}
	})
}

func TestCloseGivesUpOnAStuckWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{open: make(chan struct{})}
		o := start(t, Options{Log: w})
		defer close(w.open)
		o.Observe(served())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAFailedWriteIsToldByClose(t *testing.T) {
	o := start(t, Options{Log: full{}})
	o.Observe(served())
	if err := o.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v, want what the disk said", err)
	}
}
