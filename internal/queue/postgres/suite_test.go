package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/heedproject/heed/internal/queue/queuetest"
	"github.com/jackc/pgx/v5"
)

func TestStore(t *testing.T) {
	queuetest.Run(t, func(t testing.TB, o queuetest.Options) (queue.Store, func(*queue.Keys) queue.Store) {
		p := options(t)
		p.Keys, p.Keep, p.Most, p.Connections = o.Keys, o.Keep, o.Most, 2
		s := open(t, p)
		return s, func(k *queue.Keys) queue.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			p.Keys = k
			return open(t, p)
		}
	})
}

// address is where the tests' server is: tools/postgres.sh starts one.
func address(t testing.TB) string {
	a := os.Getenv("HEED_TEST_POSTGRES")
	if a == "" {
		t.Skip("HEED_TEST_POSTGRES names no server: run this through tools/postgres.sh")
	}
	return a
}

var schemas atomic.Int64

// options are of a store in a schema of its own, which is dropped when the test ends.
func options(t testing.TB) postgres.Options {
	a := address(t)
	schema := fmt.Sprintf("test_%d_%d", os.Getpid(), schemas.Add(1))
	t.Cleanup(func() { ask(t, a, "DROP SCHEMA IF EXISTS "+schema+" CASCADE") })
	return postgres.Options{Address: postgres.Address(a), Schema: schema, Keys: queue.NewKeys(key)}
}

// ask runs statements beside the store, one after the other.
func ask(t testing.TB, address string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	c, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for _, text := range statements {
		if _, err := c.PgConn().Exec(ctx, text).ReadAll(); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// open opens a store for the time of the test.
func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// with changes parameters of an address.
func with(t testing.TB, address string, change func(*url.URL, url.Values)) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	change(u, q)
	u.RawQuery = q.Encode()
	return u.String()
}
