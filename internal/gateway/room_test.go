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

// filling is a store whose disk has room for so many more steps.
type filling struct {
	Store
	left int
}

func (f *filling) Enqueue(ctx context.Context, now time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	if f.left--; f.left < 0 {
		return nil, queue.ErrFull
	}
	return f.Store.Enqueue(ctx, now, calls)
}

func (f *filling) Cancel(ctx context.Context, now time.Time, id string) error {
	if f.left--; f.left < 0 {
		return queue.ErrFull
	}
	return f.Store.Cancel(ctx, now, id)
}

func TestAnImportThatTheStoreStopsTellsAndAuditsHowManyWereTaken(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.set.Later.Store = &filling{l.store, 2}
		const line = `{"heed":1,"endpoint":"api","method":"GET","path":"/x"}`
		a := l.operate("POST", "/_heed/calls/import", line+"\nno envelope\n"+line+"\n"+line+"\n", nil)
		p := wantProblem(t, a, 507, "queue-disk-full")
		wantText(t, p.Detail, "Line 4 stopped the import. Before it 2 calls were taken in and 0 were known; ", "Make room on the disk")
		if strings.Contains(p.Detail, "Nothing was") {
			t.Errorf("got %q, want no word that nothing was done", p.Detail)
		}
		if got := p.Imported; got == nil || got.Accepted != 2 || len(got.Refused) != 1 || got.Refused[0].Line != 2 {
			t.Errorf("got %+v, want what was taken in, and that line 2 was refused", got)
		}
		wantText(t, l.logged(), `"action":"import"`, `"calls":2,"error":"`)
	})
}

func TestAnImportWhoseSenderFailsIsAudited(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.set.Later.Body = 100
		long := strings.Repeat("x", maxOrder+1000)
		a := l.operate("POST", "/_heed/calls/import", `{"heed":1,"endpoint":"api","method":"GET","path":"/x"}`+"\n"+long, nil)
		p := wantProblem(t, a, 400, "bad-request")
		wantText(t, p.Detail, "Line 2 stopped the import. Before it 1 calls were taken in", "longer than queue.max.body allows")
		wantText(t, l.logged(), `"action":"import"`, `"calls":1,"error":"`)
	})
}

func TestAnOrderThatTheStoreStopsSaysHowManyWereDone(t *testing.T) {
	bubble(t, nil, func(l *later) {
		for range 3 {
			l.async("GET", "/api/x", "", "Heed-Not-Before", "3600")
		}
		l.set.Later.Store = &filling{l.store, 2}
		p := wantProblem(t, l.operate("POST", "/_heed/calls/cancel", `{}`, nil), 507, "queue-disk-full")
		if want := "2 of the calls were done before that, and the same order can be repeated. Make room"; !strings.HasPrefix(p.Detail, want) {
			t.Errorf("got %q, want it to begin %q", p.Detail, want)
		}
	})
}

// narrow is a store whose disk has room for few changes at a time.
type narrow struct {
	Store
	most int
}

func (n *narrow) Purge(ctx context.Context, ids []string) (int, error) {
	if len(ids) > n.most {
		return 0, queue.ErrFull
	}
	return n.Store.Purge(ctx, ids)
}

func TestFewerCallsArePurgedAtATimeWhereThereIsNoRoomForMany(t *testing.T) {
	bubble(t, nil, func(l *later) {
		for range 9 {
			l.end(l.async("GET", "/api/x", ""))
		}
		l.set.Later.Store = &narrow{l.store, 2}
		var out done
		if l.operate("POST", "/_heed/calls/purge", `{"filter":{}}`, &out); out.Count != 9 {
			t.Errorf("purged %d calls, want 9", out.Count)
		}
		l.set.Later.Store = l.store
		if page, err := l.store.List(l.Context(), queue.Filter{}); err != nil || len(page.Calls) != 0 {
			t.Errorf("%d calls are left (%v)", len(page.Calls), err)
		}
	})
}

// emptied counts how often the log is to be emptied.
type emptied struct {
	Store
	n int
}

func (e *emptied) Purge(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		e.n++
	}
	return e.Store.Purge(ctx, ids)
}

func TestTheLogIsEmptiedWhenItOutgrowsTheReserve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserve")
	bubble(t, nil, func(l *later) {
		r := &queue.Reserve{Path: path, Log: l.path + "-wal", Size: 1 << 20}
		if err := r.Fill(); err != nil {
			t.Fatal(err)
		}
		store := &emptied{Store: l.store}
		l.set.Later.Reserve, l.set.Later.Store = r, store
		for range 12 { // of which nine fit
			l.async("PUT", "/api/x", strings.Repeat("x", 80<<10), "Heed-Not-Before", "3600")
		}
		if store.n != 1 {
			t.Errorf("the log was emptied %d times, want once", store.n)
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
