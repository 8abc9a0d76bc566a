package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/heedproject/heed/internal/queue"
)

// applicationID marks the file as ours ("heed"), so that another program's
// database is not taken for a queue.
const applicationID = 0x68656564

// first is the version that the first migration makes. Files below it were made
// by builds before the first release.
const first = 3

// migrations bring an older database up, each in a transaction of its own.
// What has been released is never changed; a change is a new entry.
//
// Times are nanoseconds since 1970, 0 for none. Bodies lie apart from calls,
// so that claiming and settling rewrites small rows only. What most of a
// transaction costs is the pages that it changes: each is written to the log
// and later to the file. So whatever falls on any page is put off: of late
// calls, the index due has those only that are listed (see arrival), and the
// table filed those keys only that the rows of calls no longer have to tell
// (see ledger). Keys are digests that are numbers, so that their rows are
// small; when they can be erased is rounded to minutes, so that those which
// were filed together lie together in that index too.
var migrations = []string{`
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('epoch', 0), ('filed', 0), ('listed', 0);

CREATE TABLE sealers (key INTEGER PRIMARY KEY);

CREATE TABLE gates (
	gate INTEGER PRIMARY KEY,
	endpoint TEXT NOT NULL,
	key TEXT NOT NULL,
	closed INTEGER NOT NULL DEFAULT 0,
	source TEXT NOT NULL DEFAULT '',
	paused INTEGER NOT NULL DEFAULT 0,
	most INTEGER NOT NULL DEFAULT 0,
	served INTEGER NOT NULL DEFAULT 0,
	UNIQUE (endpoint, key)
);

CREATE TABLE calls (
	seq INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	gate INTEGER NOT NULL,
	method TEXT NOT NULL,
	template TEXT NOT NULL,
	tenant TEXT NOT NULL,
	line INTEGER NOT NULL,
	correlation TEXT NOT NULL,
	traceparent TEXT NOT NULL,
	repeatable INTEGER NOT NULL,
	not_before INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	created INTEGER NOT NULL,
	size INTEGER NOT NULL,
	state INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	next_at INTEGER NOT NULL,
	listed INTEGER NOT NULL DEFAULT 0,
	reason TEXT NOT NULL DEFAULT '',
	class TEXT NOT NULL DEFAULT '',
	status INTEGER NOT NULL DEFAULT 0,
	attempts INTEGER NOT NULL DEFAULT 0,
	waits INTEGER NOT NULL DEFAULT 0,
	waited INTEGER NOT NULL DEFAULT 0,
	wait_source TEXT NOT NULL DEFAULT '',
	delay INTEGER NOT NULL DEFAULT 0,
	first_at INTEGER NOT NULL DEFAULT 0,
	last_at INTEGER NOT NULL DEFAULT 0,
	trail BLOB,
	note BLOB,
	ended INTEGER NOT NULL DEFAULT 0,
	kept_until INTEGER NOT NULL DEFAULT 0,
	token INTEGER NOT NULL DEFAULT 0,
	epoch INTEGER NOT NULL DEFAULT 0,
	lease_until INTEGER NOT NULL DEFAULT 0,
	begun INTEGER NOT NULL DEFAULT 0,
	print INTEGER,
	print_body INTEGER,
	print_key INTEGER,
	print_until INTEGER
);
CREATE INDEX due ON calls (gate, line, next_at) WHERE state = 0 AND listed = 1;
CREATE INDEX leases ON calls (lease_until) WHERE state = 1;
CREATE INDEX expiring ON calls (expires) WHERE state = 0 AND expires > 0;
CREATE INDEX broken ON calls (state, seq) WHERE state > 2;
CREATE INDEX kept ON calls (kept_until) WHERE state > 1;
CREATE INDEX tenants ON calls (tenant, seq) WHERE tenant > '';
CREATE INDEX correlations ON calls (correlation, seq) WHERE correlation > '';

CREATE TABLE requests (seq INTEGER PRIMARY KEY, sealed BLOB NOT NULL);
CREATE TABLE answers (seq INTEGER PRIMARY KEY, sealed BLOB NOT NULL);
CREATE TABLE revisions (
	seq INTEGER NOT NULL,
	revision INTEGER NOT NULL,
	sealed BLOB NOT NULL,
	PRIMARY KEY (seq, revision)
);

CREATE TABLE filed (
	print INTEGER PRIMARY KEY,
	body INTEGER NOT NULL,
	key INTEGER NOT NULL,
	id TEXT NOT NULL,
	until INTEGER NOT NULL
);
CREATE INDEX filed_until ON filed (until >> 36);
CREATE VIEW fresh AS SELECT print, print_key AS key FROM calls
	WHERE seq > (SELECT value FROM meta WHERE name = 'filed') AND print IS NOT NULL;
CREATE VIEW taken AS SELECT print, key FROM fresh
	UNION ALL SELECT print, key FROM filed WHERE print NOT IN (SELECT print FROM fresh);

CREATE TABLE tallies (
	gate INTEGER NOT NULL,
	state INTEGER NOT NULL,
	reason TEXT NOT NULL,
	n INTEGER NOT NULL,
	PRIMARY KEY (gate, state, reason)
) WITHOUT ROWID;
`}

// migrate brings the schema up to the newest version, and refuses what is not
// a queue or is newer than this program.
func migrate(ctx context.Context, c *sql.Conn, path string) error {
	var version, app, tables int
	for _, q := range []struct {
		text string
		to   *int
	}{
		{"PRAGMA user_version", &version},
		{"PRAGMA application_id", &app},
		{"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := c.QueryRowContext(ctx, q.text).Scan(q.to); err != nil {
			return wrap("read the schema of "+path, err)
		}
	}
	newest := first + len(migrations) - 1
	if version > newest {
		return fmt.Errorf("open %s: its schema has version %d, this heed knows %d: start the newer heed, "+
			"or give another file: %w", path, version, newest, queue.ErrSchema)
	}
	if tables > 0 && app != applicationID {
		return fmt.Errorf("open %s: it is a database of another program: give another file: %w", path, queue.ErrStorage)
	}
	if tables > 0 && version < first {
		return fmt.Errorf("open %s: it was made by a heed before the first release (schema %d, the oldest known is %d): "+
			"let that heed work it off or write it out (heed calls export), then give another file: %w", path, version, first, queue.ErrStorage)
	}
	for v := max(version+1, first); v <= newest; v++ {
		text := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
			migrations[v-first], applicationID, v)
		if _, err := c.ExecContext(ctx, text); err != nil {
			c.ExecContext(ctx, "ROLLBACK")
			return wrap(fmt.Sprintf("bring the schema of %s to version %d", path, v), err)
		}
	}
	return nil
}
