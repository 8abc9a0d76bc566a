package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
	"github.com/jackc/pgx/v5"
)

func isErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want one that is %q", what, got, want)
	}
}

// says looks for words in an error.
func says(t testing.TB, err error, words string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("error: got %v, want one that says %q", err, words)
	}
}

func TestANewerSchemaIsRefused(t *testing.T) {
	o := options(t)
	open(t, o).Close()
	ask(t, string(o.Address), "UPDATE "+o.Schema+".schema_version SET version = 99")
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrSchema)
}

func TestASchemaOfBeforeTheFirstReleaseIsRefusedAsItIs(t *testing.T) {
	o := options(t)
	enqueue(t, open(t, o), get("a", "k"))
	ask(t, string(o.Address), "UPDATE "+o.Schema+".schema_version SET version = 1")
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrSchema)
	says(t, err, "schema "+o.Schema+" has version 1")
	says(t, err, "heed calls export")
	if all := dump(t, o); !strings.Contains(all, "schema_version: \x00\x00\x00\x01") && !strings.Contains(all, "schema_version: 1") {
		t.Error("the version was changed")
	}
}

func TestAnotherProgramsSchemaIsRefused(t *testing.T) {
	o := options(t)
	ask(t, string(o.Address), "CREATE SCHEMA "+o.Schema+"; CREATE TABLE "+o.Schema+".theirs (a integer)")
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrStorage)
	says(t, err, "another program")
}

func TestARingWithoutTheKeyOfTheRecordsIsRefused(t *testing.T) {
	o := options(t)
	enqueue(t, open(t, o), get("a", "k"))
	was := o.Keys.Active()
	o.Keys = queue.NewKeys(queue.NewKey())
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrKey)
	says(t, err, was)
}

func TestAWrongPasswordIsToldWithoutIt(t *testing.T) {
	o := options(t)
	const wrong = "CANARY-wrong-password"
	o.Address = postgres.Address(with(t, string(o.Address), func(u *url.URL, _ url.Values) { u.User = url.UserPassword(u.User.Username(), wrong) }))
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrStorage)
	says(t, err, "correct user, password")
	hides(t, wrong, err)
}

func TestAnUnknownDatabaseIsTold(t *testing.T) {
	o := options(t)
	o.Address = postgres.Address(with(t, string(o.Address), func(u *url.URL, _ url.Values) { u.Path = "/nowhere" }))
	_, err := postgres.Open(t.Context(), o)
	isErr(t, "open", err, queue.ErrStorage)
	says(t, err, "createdb")
}

// hides prints a value in every way and looks for a secret.
func hides(t testing.TB, secret string, values ...any) {
	t.Helper()
	for _, v := range values {
		said := fmt.Sprintf("%v %+v %#v %s %q", v, v, v, v, v)
		b, err := json.Marshal(v)
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "v", v)
		if said += string(b) + log.String(); err != nil || strings.Contains(said, secret) {
			t.Errorf("the secret is printed: %s (%v)", said, err)
		}
	}
}

func TestAnAddressPrintsNoPassword(t *testing.T) {
	const secret = "CANARY-password"
	for _, text := range []string{
		"postgres://heed:" + secret + "@db.example:5433/calls?sslmode=disable",
		"host=db.example port=5433 user=heed password=" + secret + " dbname=calls",
		"postgres://heed:" + secret + "%zz@db.example/calls",
		"postgres:/heed:" + secret + "@db.example:port/calls",
		"password='" + secret,
	} {
		a := postgres.Address(text)
		_, err := postgres.Open(t.Context(), postgres.Options{Address: a, Keys: queue.NewKeys(key)})
		if err == nil {
			t.Errorf("open %s: got no error", a)
		}
		hides(t, secret, a, &a, postgres.Options{Address: a}, err)
	}
	a := postgres.Address("postgres://heed:x@db.example:5433/calls")
	if got, want := a.String(), "db.example:5433/calls"; got != want {
		t.Errorf("address: got %s, want %s", got, want)
	}
}

func TestTheClocksMustAgree(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		name   string
		there  time.Duration
		refuse bool
	}{
		{"as here", 0, false},
		{"a little ahead", postgres.MaxSkew, false},
		{"a little behind", -postgres.MaxSkew, false},
		{"ahead", postgres.MaxSkew + 2*time.Second, true},
		{"behind", -postgres.MaxSkew - 2*time.Second, true},
	} {
		// the answer took a second, so that it is known to a second only
		err := postgres.CheckClock(now, now.Add(tt.there), now.Add(time.Second))
		if got := errors.Is(err, queue.ErrStorage); got != tt.refuse {
			t.Errorf("a server whose clock is %s: got %v, want refused: %v", tt.name, err, tt.refuse)
		}
	}
}

func TestWhatIsNoTextIsRefusedAndSpoilsNoOther(t *testing.T) {
	s := open(t, options(t))
	for _, word := range []string{"a\x00b", "a\xffb"} {
		bad := get("bad", "k")
		bad.Tenant = word
		_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{bad})
		isErr(t, "enqueue", err, queue.ErrInvalid)
		_, err = s.Get(t.Context(), word)
		isErr(t, "get", err, queue.ErrNotFound)
		_, err = s.List(t.Context(), queue.Filter{Tenant: word})
		isErr(t, "list", err, queue.ErrInvalid)
	}
	enqueue(t, s, get("a", "k"))
	c := claim(t, s, time.Now())[0]
	lost, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "a", Lease: c.Lease, Outcome: queue.Outcome{State: queue.Dead, Reason: "a\x00\xff"}}})
	if err != nil || len(lost) != 0 || state(t, s, "a") != queue.Dead {
		t.Errorf("settle with a reason that is no text: got %v, %v, want it dead", lost, err)
	}
}

func TestAStoreThatIsClosedSaysSo(t *testing.T) {
	s := open(t, options(t))
	s.Close()
	_, err := s.Enqueue(t.Context(), time.Now(), []queue.Call{get("a", "k")})
	isErr(t, "enqueue", err, queue.ErrClosed)
	_, err = s.Claim(t.Context(), time.Now(), queue.Ask{Max: 1})
	isErr(t, "claim", err, queue.ErrClosed)
	_, err = s.Get(t.Context(), "a")
	isErr(t, "get", err, queue.ErrClosed)
}

func TestACallerThatHasGoneStoresNothing(t *testing.T) {
	s := open(t, options(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Enqueue(ctx, time.Now(), []queue.Call{get("a", "k")})
	isErr(t, "enqueue", err, context.Canceled)
	_, err = s.Get(t.Context(), "a")
	isErr(t, "get", err, queue.ErrNotFound)
}

func TestALeaseSettlesAcrossARestart(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, post("w", "k"))
	c := claim(t, s, time.Now())[0]
	s.Close()
	s = open(t, o)
	answer := &queue.Result{Status: 201, Body: []byte("made")}
	lost, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "w", Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done, Answer: answer}}})
	if err != nil || len(lost) != 0 {
		t.Fatalf("settle: got %v, %v, want it done", lost, err)
	}
	if got, err := s.Answer(t.Context(), "w"); err != nil || string(got.Body) != "made" {
		t.Errorf("answer: got %v, %v", got, err)
	}
}

// canary stands for whatever must not lie open in the database.
const canary = "CANARY-7c1f"

func secretCall() queue.Call {
	c := get("a", "k")
	c.Path, c.Key, c.Callback, c.Body = "/p/"+canary+"?token="+canary, canary+"-key", "https://x.example/"+canary, []byte(canary)
	c.Header = http.Header{"X-" + canary: {canary}}
	return c
}

func TestNothingThatACallSaysLiesOpenInTheDatabase(t *testing.T) {
	o := options(t)
	s := open(t, o)
	enqueue(t, s, secretCall())
	c := claim(t, s, time.Now())[0]
	_, err := s.Settle(t.Context(), time.Now(), []queue.Settlement{{ID: "a", Lease: c.Lease, Outcome: queue.Outcome{State: queue.Quarantined,
		Reason: "invalid-answer", Answer: &queue.Result{Status: 200, Header: http.Header{"Etag": {canary}}, Body: []byte(canary)}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Edit(t.Context(), time.Now(), "a", secretCall().Request); err != nil {
		t.Fatal(err)
	}
	all := dump(t, o)
	for _, table := range []string{"calls", "revisions", "taken"} {
		if !strings.Contains(all, table+":") {
			t.Fatalf("the search does not see a row of %s", table)
		}
	}
	if !strings.Contains(all, "invalid-answer") {
		t.Fatal("the search finds nothing: not even the reason, which lies open")
	}
	if strings.Contains(all, canary) {
		t.Error("the canary lies open in the database")
	}
}

// dump writes every row of every table out, bytes as they are.
func dump(t *testing.T, o postgres.Options) string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), string(o.Address))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	tables, err := c.Query(t.Context(), "SELECT tablename FROM pg_tables WHERE schemaname = $1", o.Schema)
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		rows, err := c.Query(t.Context(), "SELECT * FROM "+pgx.Identifier{o.Schema, name}.Sanitize())
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			fmt.Fprintf(&all, "%s: ", name)
			for _, raw := range rows.RawValues() {
				all.Write(raw)
			}
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
	}
	return all.String()
}

func TestEveryStateOfTheServerHasItsKind(t *testing.T) {
	for _, tt := range []struct {
		code string
		kind error
		do   string
	}{
		{"53100", queue.ErrFull, "free space"},
		{"53300", queue.ErrStorage, "max_connections"},
		{"28P01", queue.ErrStorage, "password"},
		{"57P03", queue.ErrStorage, "by itself"},
		{"25006", queue.ErrStorage, "primary"},
		{"42501", queue.ErrStorage, "owner"},
		{"XX001", queue.ErrCorrupt, "restore a copy"},
		{"22021", queue.ErrInvalid, "refused"},
		{"99999", queue.ErrStorage, "cause"},
		{"", queue.ErrStorage, "cause"},
	} {
		do, kind := postgres.Sort(tt.code)
		if kind != tt.kind || !strings.Contains(do, tt.do) {
			t.Errorf("SQLSTATE %q: got %v, %q, want %v that says %q", tt.code, kind, do, tt.kind, tt.do)
		}
	}
}

func TestLargeAndManyBodiesComeBackAsTheyWere(t *testing.T) {
	s := open(t, options(t))
	calls := make([]queue.Call, 20)
	for i := range calls {
		calls[i] = get(fmt.Sprint("c", i), "k")
		calls[i].Key = fmt.Sprint("key ", i)
		calls[i].Body = bytes.Repeat([]byte{byte(i)}, 7_000*i) // more than a message of the driver holds
	}
	enqueue(t, s, calls...)
	for i := range calls {
		got, err := s.Reveal(t.Context(), calls[i].ID)
		if err != nil || !bytes.Equal(got.Body, calls[i].Body) {
			t.Errorf("body of call %d: got %d bytes, %v, want %d", i, len(got.Body), err, len(calls[i].Body))
		}
	}
	if got := len(claim(t, s, time.Now())); got != len(calls) {
		t.Errorf("claimed: got %d, want %d", got, len(calls))
	}
}

func TestCallsOfOneStoreAreListedInTheirOrder(t *testing.T) {
	s := open(t, options(t))
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("c", i))
		enqueue(t, s, get(want[i], fmt.Sprint("k", i%3)))
	}
	p, err := s.List(t.Context(), queue.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range p.Calls {
		got = append(got, c.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("order: got %v, want %v", got, want)
	}
}

func TestAClockIsComparedWithThatOfTheDatabase(t *testing.T) {
	s := open(t, options(t))
	const off = 24 * time.Hour // so that what the question takes does not matter
	for _, by := range []time.Duration{off, -off} {
		ahead, err := s.Ahead(t.Context(), time.Now().Add(by))
		if err != nil || ahead.Round(time.Hour) != by {
			t.Errorf("got %v, %v, want %v", ahead, err, by)
		}
	}
}
