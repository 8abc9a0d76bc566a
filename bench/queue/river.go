package queue

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"
	_ "modernc.org/sqlite" // the driver that heed uses too
)

// payload is a job of River: as large as one of heed.
type payload struct {
	Body string `json:"body"`
}

// Kind implements river.JobArgs.
func (payload) Kind() string { return "call" }

func newPayload() payload {
	body := make([]byte, 768) // 1 KB in base64
	rand.Read(body)
	return payload{base64.StdEncoding.EncodeToString(body)}
}

// riverQueue is River on SQLite, set as its documentation advises (WAL, one
// connection), with the same durability as heed and the shortest pauses that
// it allows between fetches.
type riverQueue struct {
	db     *sql.DB
	driver *riversqlite.Driver
	client *river.Client[*sql.Tx]
	done   atomic.Int64
}

type riverWorker struct {
	river.WorkerDefaults[payload]
}

// Work implements river.Worker.
func (riverWorker) Work(context.Context, *river.Job[payload]) error { return nil }

func openRiver(ctx context.Context, dir string) (subject, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "river.db")+
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	r := &riverQueue{db: db, driver: riversqlite.New(db)}
	m, err := rivermigrate.New(r.driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{})
	r.client, err = river.NewClient(r.driver, &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: workers,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 256}},
	})
	return r, err
}

func (r *riverQueue) put(ctx context.Context, _ int) error {
	_, err := r.client.Insert(ctx, newPayload(), nil)
	return err
}

func (r *riverQueue) fill(ctx context.Context, n int) error {
	for n > 0 {
		batch := make([]river.InsertManyParams, min(500, n))
		for i := range batch {
			batch[i].Args = newPayload()
		}
		if _, err := r.client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
		n -= len(batch)
	}
	return nil
}

func (r *riverQueue) work(ctx context.Context, n int, most time.Duration) (int, error) {
	events, stop := r.client.SubscribeConfig(&river.SubscribeConfig{ChanSize: n + 1, Kinds: []river.EventKind{river.EventKindJobCompleted}})
	defer stop()
	if err := r.client.Start(ctx); err != nil {
		return 0, err
	}
	over := time.After(most)
	done := 0
	for done < n {
		select {
		case <-events:
			done++
			continue
		case <-over:
		}
		break
	}
	return done, r.client.Stop(ctx)
}

func (r *riverQueue) claim(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	got, err := r.driver.GetExecutor().JobGetAvailable(ctx, &riverdriver.JobGetAvailableParams{
		ClientID: "bench", MaxAttemptedBy: 10, MaxToLock: perClaim, Queue: river.QueueDefault,
	})
	took := time.Since(begun)
	if err != nil {
		return 0, err
	}
	if len(got.Jobs) != perClaim {
		return 0, fmt.Errorf("claim: got %d jobs", len(got.Jobs))
	}
	return took, nil
}

func (r *riverQueue) close() error { return r.db.Close() }
