package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/internal/queue"
)

func TestAPurgeThatFailsIsNotTakenDownAsDone(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.end(l.async("GET", "/api/x", ""))
		l.set.Later.Store = &stuck{Store: l.store}
		wantProblem(t, l.operate("POST", "/_heed/calls/purge", `{"filter":{},"why":"room"}`, nil), 507, "queue-disk-full")
		if log := l.logged(); !strings.Contains(log, `"action":"purge"`) || !strings.Contains(log, `"calls":0`) || !strings.Contains(log, `"error":"`) {
			t.Errorf("the audit has\n%s", log)
		}
	})
}

// stuck is a store whose disk is full until a reserve is given up.
type stuck struct {
	Store
	reserve *queue.Reserve
}

func (s *stuck) full() bool {
	if s.reserve == nil {
		return true
	}
	_, err := os.Stat(s.reserve.Path)
	return err == nil
}

func (s *stuck) Purge(ctx context.Context, ids []string) (int, error) {
	if s.full() {
		return 0, queue.ErrFull
	}
	return s.Store.Purge(ctx, ids)
}

func (s *stuck) Cancel(ctx context.Context, now time.Time, id string) error {
	if s.full() {
		return queue.ErrFull
	}
	return s.Store.Cancel(ctx, now, id)
}

func TestRoomIsMadeOnAFullDiskOutOfTheReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserve")
	bubble(t, nil, func(l *later) {
		var refused []string
		l.set.Later.Taken = func(why string, _ error) { refused = append(refused, why) }
		r := &queue.Reserve{Path: path, Size: 1 << 10}
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
		l.set.Later.Reserve, l.set.Later.Store = r, &stuck{l.store, r}
		l.end(l.async("GET", "/api/x", ""))
		at := l.async("GET", "/api/y", "", "Heed-Not-Before", "3600")
		if a := l.do(l.Gateway, "DELETE", at, ""); a.StatusCode != 200 {
			t.Errorf("a cancel got %d: %s", a.StatusCode, a.text)
		}
		wantProblem(t, l.do(l.Gateway, "GET", "/api/z", "", "Prefer", "respond-async"), 507, "queue-disk-full")
		var out done
		if l.operate("POST", "/_heed/calls/purge", `{"filter":{}}`, &out); out.Count != 2 {
			t.Errorf("purged %d calls, want 2", out.Count)
		}
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
		l.async("GET", "/api/z", "")
		if diff := cmp.Diff(refused, []string{"", "", RefusedStorage, ""}); diff != "" {
			t.Errorf("what became of those handed in (-got +want):\n%s", diff)
		}
	})
}

func TestAQueueThatTakesNothingInIsToldByReadyz(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.Ready(true)
		said := ""
		l.set.Later.Trouble = func() string { return said }
		if a := l.operate("GET", "/readyz", "", nil); a.StatusCode != 200 || a.text != "ready\n" {
			t.Errorf("got %d %q", a.StatusCode, a.text)
		}
		said = "its disk is full"
		if a := l.operate("GET", "/readyz", "", nil); a.StatusCode != 200 || !strings.Contains(a.text, said) {
			t.Errorf("got %d %q", a.StatusCode, a.text)
		}
	})
}
