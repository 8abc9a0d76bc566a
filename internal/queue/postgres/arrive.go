package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/heedproject/heed/internal/queue"
)

// Calls that arrive are counted in one row of a stripe, which lists what came: to
// add to it costs the server a fifth of what it costs to add to as many
// tallies. When the list is long it goes into the tallies, in the order in which
// a ledger writes these: another gateway may count in the same stripe.
const (
	prepareArrivals = `PREPARE arrive (smallint, bigint[], smallint[], integer[]) AS
		INSERT INTO arrivals AS a (lane, gates, lines, n) VALUES ($1, $2, $3, $4) ON CONFLICT (lane) DO UPDATE
			SET gates = a.gates || excluded.gates, lines = a.lines || excluded.lines, n = a.n || excluded.n;
		PREPARE settle_arrivals (smallint) AS
		WITH was AS (SELECT gates, lines, n FROM arrivals WHERE lane = $1 FOR UPDATE
		), cleared AS (UPDATE arrivals SET gates = '{}', lines = '{}', n = '{}' WHERE lane = $1)
		INSERT INTO tallies AS t (state, gate, reason, lane, n)
			SELECT 0, u.gate, u.line::text, $1, sum(u.n) FROM was CROSS JOIN unnest(was.gates, was.lines, was.n) u(gate, line, n)
				GROUP BY u.gate, u.line ORDER BY u.gate, u.line::text COLLATE "C"
			ON CONFLICT (state, gate, reason, lane) DO UPDATE SET n = t.n + excluded.n`
	// longest is how many entries a list may have.
	longest = 96
)

// arrive returns the statements that count new calls: all in them is numbers.
func (s *Store) arrive(t *tx, fresh []*parcel) (string, error) {
	if err := t.prepare("arrivals", prepareArrivals); err != nil {
		return "", err
	}
	counts := arrivals(fresh)
	settle := ""
	if s.arrived[t.stripe] += len(counts); s.arrived[t.stripe] > longest {
		settle, s.arrived[t.stripe] = fmt.Sprintf("EXECUTE settle_arrivals (%d);", t.stripe), len(counts)
	}
	var gates, lines, n []byte
	for i, c := range counts {
		if i > 0 {
			gates, lines, n = append(gates, ','), append(lines, ','), append(n, ',')
		}
		gates = strconv.AppendInt(gates, c.gate, 10)
		lines = strconv.AppendInt(lines, int64(c.line), 10)
		n = strconv.AppendInt(n, int64(c.n), 10)
	}
	return fmt.Sprintf("%sEXECUTE arrive (%d,'{%s}','{%s}','{%s}')", settle, t.stripe, gates, lines, n), nil
}

// arrival is how many calls came of one line of a gate.
type arrival struct {
	gate int64
	line queue.Line
	n    int
}

func arrivals(fresh []*parcel) []arrival {
	all := make([]arrival, len(fresh))
	for i, p := range fresh {
		all[i] = arrival{p.gate, p.line, 1}
	}
	slices.SortFunc(all, func(a, b arrival) int {
		return cmp.Or(cmp.Compare(a.gate, b.gate), cmp.Compare(a.line, b.line))
	})
	counts := all[:0]
	for _, a := range all {
		if last := len(counts) - 1; last >= 0 && counts[last].gate == a.gate && counts[last].line == a.line {
			counts[last].n++
			continue
		}
		counts = append(counts, a)
	}
	return counts
}

// prepare runs statements once in a session.
func (t *tx) prepare(name, text string) error {
	done := t.conn.PgConn().CustomData()
	if done[name] != nil {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.script(text); err != nil {
		return err
	}
	done[name] = true
	return nil
}
