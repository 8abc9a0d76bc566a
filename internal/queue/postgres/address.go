package postgres

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Address says where the server is and who asks, as a URL
// (postgres://user:password@host:port/database) or in the form of libpq. It
// may hold a password: it prints as host, port and database.
type Address string

// String tells host, port and database.
func (a Address) String() string {
	c, err := a.parse()
	if err != nil {
		return "postgres (an address that cannot be read)"
	}
	return place(c)
}

// GoString is String.
func (a Address) GoString() string { return a.String() }

// Format is String, whatever the verb.
func (a Address) Format(f fmt.State, _ rune) { io.WriteString(f, a.String()) }

// LogValue is String.
func (a Address) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalJSON is String.
func (a Address) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// MarshalText is String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// parse does not tell what the driver says of a wrong address: it may quote it.
func (a Address) parse() (*pgxpool.Config, error) {
	c, err := pgxpool.ParseConfig(string(a))
	if err != nil || a == "" {
		return nil, fmt.Errorf("the address of the Postgres server cannot be read: "+
			"write postgres://user:password@host:port/database, with %%-escapes in the password: %w", queue.ErrInvalid)
	}
	return c, nil
}

// place is what may be told of an address.
func place(c *pgxpool.Config) string {
	return net.JoinHostPort(c.ConnConfig.Host, strconv.Itoa(int(c.ConnConfig.Port))) + "/" + c.ConnConfig.Database
}
