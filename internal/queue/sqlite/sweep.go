package sqlite

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// Sweep implements queue.Keeper.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (queue.Swept, error) {
	var swept queue.Swept
	err := s.do(ctx, func(b *book) error {
		at := nanos(now)
		ended := b.open(b.seqs(b.q.ended, at, limit))
		expired := b.expire(now, limit)
		for _, r := range ended {
			b.drop(r)
		}
		keys := b.overdue(at, limit)
		swept = queue.Swept{Expired: expired, Erased: len(ended), Keys: keys,
			More: expired == limit || len(ended) == limit || keys == limit}
		b.erased = b.erased || b.stale && !swept.More || len(ended) > 0 && !swept.More
		return nil
	})
	if err != nil {
		return queue.Swept{}, err
	}
	return swept, nil
}

// expire ends calls that have expired, up to a limit, and tells how many.
func (b *book) expire(now time.Time, limit int) int {
	expired := b.open(b.seqs(b.q.expired, nanos(now), limit))
	for _, r := range expired {
		b.settle(now, r, &queue.Outcome{State: queue.Dead, Reason: queue.ReasonExpired})
	}
	return len(expired)
}

// drop erases a call and all that belongs to it but its idempotency key.
func (b *book) drop(r *row) {
	if r.seq > b.keys.filed {
		b.exec(b.q.file, array([]int64{r.seq}))
	}
	b.exec(b.q.dropCall, r.seq)
	b.erase = append(b.erase, r.seq)
	b.exec(b.q.dropAnswer, r.seq)
	b.exec(b.q.dropRevisions, r.seq)
	b.move(b.byID[r.gate], r.State, r.Reason, -1)
}

// Purge implements queue.Keeper. Without ids it empties the log.
func (s *Store) Purge(ctx context.Context, ids []string) (int, error) {
	var erased int
	err := s.do(ctx, func(b *book) error {
		erased = 0
		for _, id := range ids {
			if r := b.load(id); r != nil && r.State.Ended() {
				b.drop(r)
				erased++
			}
		}
		b.erased = b.erased || erased > 0 || len(ids) == 0
		return nil
	})
	if err != nil {
		return 0, err
	}
	return erased, nil
}

// truncate empties the write-ahead log: what was erased would live on in it. A
// reader may be in the way, who is waited for only so long as the others who
// write can wait too; or the mover. Then it is tried again when that one is done,
// and at the next sweep.
func (b *book) truncate() {
	b.wait(inTheWay)
	emptied, err := b.s.empty(context.Background(), b.c)
	b.wait(locked)
	b.stale = !emptied
	b.shifted(err)
}

// roomy tells that the log, which found no room to grow, was moved into the file
// and has some again. It is tried only where the file need not grow for it: what
// was purged left free pages there, while answers that no log could take kept the
// calls in the queue from ending until somebody purged again.
func (b *book) roomy() bool {
	ctx := context.Background()
	var pages, size int64
	log, err := os.Stat(b.s.path + "-wal")
	if err != nil || log.Size() == 0 || b.moving {
		return false
	}
	file, err := os.Stat(b.s.path)
	if err == nil {
		err = b.c.QueryRowContext(ctx, "PRAGMA page_count").Scan(&pages)
	}
	if err == nil {
		err = b.c.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size)
	}
	if err != nil || pages*size > file.Size() {
		return false
	}
	b.truncate()
	return !b.stale && b.dead == nil
}

// How long the writer waits for another program's lock, and for readers.
const (
	locked   = 5 * time.Second
	inTheWay = 100 * time.Millisecond
)

func busy(d time.Duration) string { return fmt.Sprintf("busy_timeout(%d)", d.Milliseconds()) }

// wait sets how long the writer waits for others.
func (b *book) wait(d time.Duration) {
	b.c.ExecContext(context.Background(), "PRAGMA "+busy(d))
}
