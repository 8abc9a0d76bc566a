package queue

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
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
	return payload{base64.StdEncoding.EncodeToString(noise(768))} // 1 KB in base64
}

// riverQueue is River, with the same durability as heed and the shortest pauses
// that it allows between fetches.
type riverQueue[Tx any] struct {
	driver riverdriver.Driver[Tx]
	client *river.Client[Tx]
	schema string       // empty: the default of the database
	end    func() error // closes the database
}

type riverWorker struct {
	river.WorkerDefaults[payload]
}

// Work implements river.Worker.
func (riverWorker) Work(context.Context, *river.Job[payload]) error { return nil }

// openRiverSQLite sets River as its documentation advises for SQLite: WAL, one
// connection.
func openRiverSQLite(ctx context.Context, dir string) (subject, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "river.db")+
		"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_pragma=foreign_keys(1)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return newRiver(ctx, riversqlite.New(db), "", db.Close)
}

// openRiverPostgres gives River a schema of its own, as heed has, and as many
// connections.
func openRiverPostgres(ctx context.Context, dsn string) (subject, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c.MaxConns = 10
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, err
	}
	schema := benchSchema()
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		return nil, err
	}
	return newRiver(ctx, riverpgxv5.New(pool), schema, func() error { pool.Close(); return nil })
}

func newRiver[Tx any](ctx context.Context, driver riverdriver.Driver[Tx], schema string, end func() error) (subject, error) {
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema})
	if err != nil {
		return nil, err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{})
	client, err := river.NewClient(driver, &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: workers, Schema: schema,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: river.FetchPollIntervalMin,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}},
	})
	if err != nil {
		return nil, err
	}
	return &riverQueue[Tx]{driver: driver, client: client, schema: schema, end: end}, nil
}

func (r *riverQueue[Tx]) put(ctx context.Context, _ int) error {
	_, err := r.client.Insert(ctx, newPayload(), nil)
	return err
}

func (r *riverQueue[Tx]) fill(ctx context.Context, n int) error {
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

func (r *riverQueue[Tx]) work(ctx context.Context, n int, most time.Duration) (int, error) {
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

func (r *riverQueue[Tx]) claim(ctx context.Context) (time.Duration, error) {
	begun := time.Now()
	got, err := r.driver.GetExecutor().JobGetAvailable(ctx, &riverdriver.JobGetAvailableParams{
		ClientID: "bench", MaxAttemptedBy: 10, MaxToLock: perClaim, Queue: river.QueueDefault, Schema: r.schema,
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

func (r *riverQueue[Tx]) close() error { return r.end() }
