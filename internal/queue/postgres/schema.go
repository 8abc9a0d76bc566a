package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// unreleased is how many versions of the schema there were before the first
// release. What they hold is not brought up.
const unreleased = 3

// migrations bring an older schema up, all in one transaction. What has been
// released is never changed; a change is a new entry.
//
// A call that has not ended has a row in due, or in leases while it is claimed:
// whoever deletes that row may change the call, and nobody else. One that has
// ended has a row in ends. These rows are small and come and go; that of the
// call itself is written when it is enqueued and when it is settled, in place,
// as no index has a column of it that changes.
//
// Calls that have not ended are counted in tallies of state 0 and in arrivals,
// whose rows list what came in a stripe (their lane) of late: live is both.
//
// Times are nanoseconds since 1970, 0 for none: timestamptz holds microseconds
// only. What is sealed does not shrink, and is not tried to. Words are compared
// byte by byte, whatever the collation of the database.
var migrations = []string{`
CREATE TABLE gates (
	gate bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	endpoint text COLLATE "C" NOT NULL,
	key text COLLATE "C" NOT NULL,
	closed bigint NOT NULL DEFAULT 0,
	source text NOT NULL DEFAULT '',
	paused boolean NOT NULL DEFAULT false,
	most integer NOT NULL DEFAULT 0,
	served bigint NOT NULL DEFAULT 0,
	UNIQUE (endpoint, key)
) WITH (fillfactor = 25);

CREATE TABLE calls (
	seq bigint PRIMARY KEY,
	gate bigint NOT NULL,
	not_before bigint NOT NULL,
	expires bigint NOT NULL,
	created bigint NOT NULL,
	next_at bigint NOT NULL,
	waited bigint NOT NULL DEFAULT 0,
	delay bigint NOT NULL DEFAULT 0,
	first_at bigint NOT NULL DEFAULT 0,
	last_at bigint NOT NULL DEFAULT 0,
	ended bigint NOT NULL DEFAULT 0,
	kept_until bigint NOT NULL DEFAULT 0,
	token bigint NOT NULL DEFAULT 0,
	size integer NOT NULL,
	revision integer NOT NULL DEFAULT 1,
	status integer NOT NULL DEFAULT 0,
	attempts integer NOT NULL DEFAULT 0,
	waits integer NOT NULL DEFAULT 0,
	state smallint NOT NULL DEFAULT 0,
	priority smallint NOT NULL,
	repeatable boolean NOT NULL,
	id text COLLATE "C" NOT NULL UNIQUE,
	method text COLLATE "C" NOT NULL,
	template text COLLATE "C" NOT NULL,
	tenant text COLLATE "C" NOT NULL,
	correlation text COLLATE "C" NOT NULL,
	traceparent text COLLATE "C" NOT NULL,
	reason text COLLATE "C" NOT NULL DEFAULT '',
	class text COLLATE "C" NOT NULL DEFAULT '',
	wait_source text COLLATE "C" NOT NULL DEFAULT '',
	trail bytea,
	note bytea,
	request bytea,
	answer bytea
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE calls ALTER COLUMN request SET STORAGE EXTERNAL, ALTER COLUMN answer SET STORAGE EXTERNAL;

CREATE TABLE due (
	gate bigint NOT NULL,
	next_at bigint NOT NULL,
	seq bigint NOT NULL,
	expires bigint NOT NULL,
	line smallint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX lines ON due (gate, line, next_at, seq);
CREATE INDEX expiring ON due (expires) WHERE expires > 0;

CREATE TABLE leases (
	gate bigint NOT NULL,
	seq bigint NOT NULL,
	token bigint NOT NULL,
	until bigint NOT NULL,
	begun bigint NOT NULL,
	PRIMARY KEY (gate, seq)
) WITH (fillfactor = 75, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX running_out ON leases (until);

CREATE TABLE ends (
	kept_until bigint NOT NULL,
	seq bigint NOT NULL,
	state smallint NOT NULL,
	PRIMARY KEY (kept_until, seq)
);
CREATE INDEX broken ON ends (seq) WHERE state > 2;

CREATE TABLE revisions (
	seq bigint NOT NULL,
	revision integer NOT NULL,
	sealed bytea NOT NULL,
	PRIMARY KEY (seq, revision)
);
ALTER TABLE revisions ALTER COLUMN sealed SET STORAGE EXTERNAL;

CREATE VIEW requests AS SELECT seq, request AS sealed FROM calls WHERE request IS NOT NULL;
CREATE VIEW answers AS SELECT seq, answer AS sealed FROM calls WHERE answer IS NOT NULL;

CREATE TABLE taken (
	print bytea PRIMARY KEY,
	body bytea NOT NULL,
	key text COLLATE "C" NOT NULL,
	id text COLLATE "C" NOT NULL,
	until bigint NOT NULL
);
CREATE INDEX taken_until ON taken (until);

CREATE TABLE tallies (
	state smallint NOT NULL,
	gate bigint NOT NULL,
	reason text COLLATE "C" NOT NULL,
	lane smallint NOT NULL,
	n bigint NOT NULL,
	PRIMARY KEY (state, gate, reason, lane)
) WITH (fillfactor = 25);

CREATE TABLE arrivals (
	lane smallint PRIMARY KEY,
	gates bigint[] NOT NULL,
	lines smallint[] NOT NULL,
	n integer[] NOT NULL
) WITH (fillfactor = 10);

CREATE VIEW live AS
	SELECT gate, reason::smallint AS line, n FROM tallies WHERE state = 0
	UNION ALL SELECT u.gate, u.line, u.n FROM arrivals a CROSS JOIN unnest(a.gates, a.lines, a.n) u(gate, line, n);
`}

// migrate brings the schema up to the newest version, and refuses one that is
// newer than this program or another's. Of several gateways that start at once
// one does it and the others wait.
func (s *Store) migrate(ctx context.Context) error {
	return s.attempt(ctx, "bring the schema of "+s.name+" up", func(t *tx) error {
		t.queue("SELECT pg_advisory_xact_lock($1)", s.lockNumber())
		if err := t.flush(); err != nil {
			return err
		}
		version, err := s.version(t)
		newest := unreleased + len(migrations)
		switch {
		case err != nil || version == newest:
			return err
		case version > newest:
			return fmt.Errorf("open %s: schema %s has version %d, this heed knows %d: start the newer heed, "+
				"or name another schema: %w", s.name, s.schema, version, newest, queue.ErrSchema)
		case version > 0 && version <= unreleased:
			return fmt.Errorf("open %s: schema %s has version %d, of a heed before its first release; this one reads %d to %d: "+
				"write its calls out with that heed (heed calls export), name another schema, and read them in (heed calls import): %w",
				s.name, s.schema, version, unreleased+1, newest, queue.ErrSchema)
		}
		for _, m := range migrations[max(version-unreleased, 0):] {
			if err := t.script(m); err != nil {
				return err
			}
		}
		t.queue("DELETE FROM schema_version")
		t.queue("INSERT INTO schema_version VALUES ($1)", newest)
		return t.commit()
	})
}

// version reads how far the schema is, and makes an empty one where there is
// none.
func (s *Store) version(t *tx) (version int, err error) {
	var there, ours bool
	var tables int
	t.queue(`SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_tables WHERE schemaname = $1 AND tablename = 'schema_version'),
		(SELECT count(*) FROM pg_tables WHERE schemaname = $1)`, s.schema).
		QueryRow(func(r pgx.Row) error { return r.Scan(&there, &ours, &tables) })
	if err := t.flush(); err != nil {
		return 0, err
	}
	if tables > 0 && !ours {
		return 0, fmt.Errorf("open %s: schema %s belongs to another program: name another schema: %w",
			s.name, s.schema, queue.ErrStorage)
	}
	if !there {
		if err := t.script("CREATE SCHEMA " + pgx.Identifier{s.schema}.Sanitize()); err != nil {
			return 0, err
		}
	}
	if !ours {
		return 0, t.script("CREATE TABLE schema_version (version integer NOT NULL)")
	}
	t.queue("SELECT version FROM schema_version").QueryRow(func(r pgx.Row) error {
		if err := r.Scan(&version); !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return nil
	})
	return version, t.flush()
}

// lockNumber is what migrations of one schema wait for. Advisory locks belong
// to the whole database, so that the number is made of our name and the schema's.
func (s *Store) lockNumber() int64 {
	h := fnv.New64a()
	h.Write([]byte("heed queue schema " + s.schema))
	return int64(h.Sum64())
}
