package app

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/queue"
)

func TestTroubleIsToldWhenItBeginsEachMinuteAndWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log journal
		tr := trouble{log: slog.New(slog.NewJSONHandler(&log, nil))}
		for range 90 { // one a second
			tr.taken(gateway.RefusedStorage, queue.ErrFull)
			time.Sleep(time.Second)
		}
		tr.taken("", nil)
		tr.taken("", nil)
		tr.taken(gateway.RefusedStorage, queue.ErrFull) // within a minute of what was told last
		tr.taken("", nil)
		var refused []string
		for line := range strings.Lines(log.String()) {
			_, rest, _ := strings.Cut(line, `"refused":`)
			n, _, _ := strings.Cut(rest, ",")
			refused = append(refused, n)
		}
		if got := strings.Join(refused, " "); got != "1 61 90" || !strings.Contains(log.String(), `"level":"ERROR"`) ||
			strings.Count(log.String(), `"alert":"queue_fails"`) != 3 || strings.Count(log.String(), "the queue works again") != 1 {
			t.Errorf("refused %q in\n%s", got, log.String())
		}
		if n := tr.counts()[0]; n != 91 || tr.words() != "" {
			t.Errorf("counted %d, and it says %q", n, tr.words())
		}
	})
}

// tight is a store whose disk may be full.
type tight struct {
	gateway.Store
	full atomic.Bool
}

func (s *tight) Enqueue(ctx context.Context, now time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	if s.full.Load() {
		return nil, queue.ErrFull
	}
	return s.Store.Enqueue(ctx, now, calls)
}

func TestCallsThatTheQueueRefusesAreToldAndCounted(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	var log journal
	a, err := New(cfg, Options{Out: &log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Stop(context.Background()) })
	disk := &tight{Store: a.queue.shown.Store}
	a.queue.shown.Store = disk
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	for range 9 {
		if resp, _ := ask(t, "POST", "http://"+a.DataAddr()+"/api/x", "b", "Prefer", "respond-async"); resp.StatusCode != 507 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	if code, text := get(t, a.AdminAddr(), "/readyz"); code != 200 || !strings.Contains(text, "its disk is full") {
		t.Errorf("readyz: got %d %q", code, text)
	}
	if code, _ := get(t, a.DataAddr(), "/api/x"); code != 200 {
		t.Errorf("those who wait: got %d", code)
	}
	if _, text := get(t, a.AdminAddr(), "/metrics"); !strings.Contains(text, `heed_queue_refused_total{reason="storage"} 9`) || !strings.Contains(text, `heed_queue_refused_total{reason="full"} 0`) {
		t.Errorf("the metrics have\n%s", text)
	}
	disk.full.Store(false)
	async(t, a, "POST", "/api/x", "b")
	if code, text := get(t, a.AdminAddr(), "/readyz"); code != 200 || text != "ready\n" {
		t.Errorf("readyz, when it is well: got %d %q", code, text)
	}
	a.Stop(t.Context())
	if n := strings.Count(log.String(), `"msg":"the queue fails"`); n != 1 || !strings.Contains(log.String(), `"msg":"the queue works again"`) {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

func TestAQueueThatIsFullIsToldAndCounted(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	queued(t, cfg)
	cfg.Queue.Max.Calls = 1
	var log journal
	a := start(t, cfg, Options{Out: &log})
	at := async(t, a, "GET", "/api/x", "", "Heed-Not-Before", "3600")
	if resp, _ := ask(t, "GET", "http://"+a.DataAddr()+"/api/x", "", "Prefer", "respond-async"); resp.StatusCode != 503 {
		t.Errorf("got %d", resp.StatusCode)
	}
	if _, text := get(t, a.AdminAddr(), "/metrics"); !strings.Contains(text, `heed_queue_refused_total{reason="full"} 1`) {
		t.Errorf("the metrics have\n%s", text)
	}
	ask(t, "DELETE", "http://"+a.DataAddr()+at, "")
	a.queue.mend(time.Now().Add(quietFor))
	a.Stop(t.Context())
	if !strings.Contains(log.String(), `"alert":"queue_full"`) || !strings.Contains(log.String(), "the queue has room again") {
		t.Errorf("the log has\n%s", log.String())
	}
}

func TestAQueueThatLostItsKeyGetsNoOtherOne(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	path := queued(t, cfg)
	a := start(t, cfg, Options{})
	async(t, a, "GET", "/api/x", "", "Heed-Not-Before", "3600")
	a.Stop(t.Context())
	if err := os.Remove(OwnKeys(path)); err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, Options{}); err == nil || !strings.Contains(err.Error(), OwnKeys(path)) || !strings.Contains(err.Error(), "put it back") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(OwnKeys(path)); err == nil {
		t.Error("it made a key")
	}
}

func TestAFolderThatIsMissingIsNamed(t *testing.T) {
	cfg := settings(api(t, "api", func(http.ResponseWriter, *http.Request) {}))
	path := queued(t, cfg)
	cfg.Queue.Path = filepath.Join(filepath.Dir(path), "gone", "q.db")
	if _, err := New(cfg, Options{}); err == nil || !strings.Contains(err.Error(), "no folder "+filepath.Dir(cfg.Queue.Path)+":") {
		t.Errorf("got %v", err)
	}
}

func TestTheLogIsWrittenToItsEndThoughTheStopTookTooLong(t *testing.T) {
	var log journal
	a := start(t, settings(api(t, "api", func(http.ResponseWriter, *http.Request) {})), Options{Out: &log})
	ctx, end := context.WithCancel(t.Context())
	end()
	a.observe.Logger().Info("the last line")
	if err := a.Stop(ctx); err != nil || !strings.Contains(log.String(), "the last line") {
		t.Errorf("got %v and the log\n%s", err, log.String())
	}
}
