package queue

import (
	"context"
	"sync"
	"time"
)

// Bell wakes those who wait for the end of a call. The zero Bell is ready.
type Bell struct {
	mu   sync.Mutex
	wait map[string]*ring
}

// ring is closed once, for all who listen.
type ring struct {
	c chan struct{}
	n int // listeners
}

// Settled rings for each call; it is made for Worker.Settled.
func (b *Bell) Settled(settled []Settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range settled {
		if r := b.wait[settled[i].ID]; r != nil {
			close(r.c)
			delete(b.wait, settled[i].ID)
		}
	}
}

// Await returns the facts of a call when it has ended, or as they are when ctx
// ends. It looks at every ring, and every poll for what another process did.
func (b *Bell) Await(ctx context.Context, r Reader, id string, poll time.Duration) (Facts, error) {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	for {
		rung := b.listen(id) // before the look, so that no ring is missed
		f, err := r.Get(context.WithoutCancel(ctx), id)
		if err != nil || f.State.Ended() {
			b.leave(id, rung)
			return f, err
		}
		timer.Reset(poll)
		select {
		case <-rung.c:
		case <-timer.C:
		case <-ctx.Done():
			b.leave(id, rung)
			return f, nil
		}
		b.leave(id, rung)
	}
}

func (b *Bell) listen(id string) *ring {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.wait[id]
	if r == nil {
		if b.wait == nil {
			b.wait = map[string]*ring{}
		}
		r = &ring{c: make(chan struct{})}
		b.wait[id] = r
	}
	r.n++
	return r
}

func (b *Bell) leave(id string, r *ring) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.n--; r.n == 0 && b.wait[id] == r {
		delete(b.wait, id)
	}
}
