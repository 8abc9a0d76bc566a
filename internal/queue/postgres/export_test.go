package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/jackc/pgx/v5"
)

// CheckClock is checkClock.
var CheckClock = checkClock

// Sort is sort.
var Sort = sort

// Setting reads a setting of a session of the store.
func (s *Store) Setting(ctx context.Context, name string, to *string) error {
	return s.rows(ctx, "SELECT current_setting($1)", []any{name}, func(r pgx.Rows) error { return r.Scan(to) })
}

// Doors is doors.
type Doors = doors

// Wariness is wariness.
const Wariness = wariness

// NewDoors makes doors.
func NewDoors(bounded bool) *Doors { return &doors{bounded: bounded} }

// MayBeBlind is mayBeBlind, and so are the others.
func (d *doors) MayBeBlind(n int, now time.Time) bool { return d.mayBeBlind(n, now) }
func (d *doors) Saw(room int, now time.Time)          { d.saw(room, now) }
func (d *doors) Met()                                 { d.met() }
func (d *doors) Places(n int) int64                   { return d.places(n) }

// Ready packs calls, and returns what writes some of them as one group in a stripe.
func Ready(ctx context.Context, s *Store, calls []queue.Call) (write func(stripe, from, to int) error, err error) {
	steps := make([]*step[*intake], len(calls))
	for i := range calls {
		steps[i] = &step[*intake]{in: &intake{parcels: make([]parcel, 1), receipts: make([]queue.Receipt, 1)}}
		if err := s.pack(ctx, time.Now(), &calls[i], &steps[i].in.parcels[0]); err != nil {
			return nil, err
		}
	}
	return func(stripe, from, to int) error { return s.takeIn(ctx, stripe, steps[from:to]) }, nil
}

// Desk is a desk.
type Desk = desk[int]

// ServeDesk makes a desk with so many stripes, whose steps carry as many bytes as
// they say.
func ServeDesk(closed <-chan struct{}, wg *sync.WaitGroup, stripes int, carry func(group []int)) *Desk {
	d := newDesk(closed, func(_ context.Context, _ int, group []*step[int]) error {
		var all []int
		for _, st := range group {
			all = append(all, st.in)
		}
		carry(all)
		return nil
	})
	d.weigh = func(n int) int { return n }
	d.serve(wg, make([]int, stripes)...)
	return d
}

// Do is do.
func (d *desk[T]) Do(ctx context.Context, in T) error { return d.do(ctx, in) }

// Leases is leases.
type Leases = leases

// Suspect is suspect, and so are the others.
func (l *leases) Suspect(token int64)    { l.suspect(token) }
func (l *leases) Suspects() []int64      { return l.suspects() }
func (l *leases) Cleared(tokens []int64) { l.cleared(tokens) }

// Longest is longest.
const Longest = longest

// Part is part of a gate whose lines have calls that are due at these instants.
func Part(due map[queue.Line]int64, now int64, room, last int) (lines []queue.Line, each int, rest bool, soon int64) {
	var v view
	for l, at := range due {
		v.lines = append(v.lines, line{line: l, due: at})
	}
	p := v.part(now, room, last)
	return p.lines, p.each, p.rest, p.soon
}

// Shelf is a shelf of which so many calls of each line were due.
type Shelf struct {
	Due  map[queue.Line]int
	Each int
	Rest bool
	Soon int64
}

// Next is next.
func (of *Shelf) Next(now int64) int64 {
	s := shelf{part: part{each: of.Each, rest: of.Rest, soon: of.Soon}}
	for l, n := range of.Due {
		for range n {
			s.heads = append(s.heads, head{line: l})
		}
	}
	return s.next(now)
}

// MaxPassed is maxPassed.
const MaxPassed = maxPassed

// Passed tells how many rows of due a claim reads to see what there is of a gate,
// and to read the first call of one of its lines.
func (s *Store) Passed(ctx context.Context, gate int64, l queue.Line, now time.Time) (seen, read int, err error) {
	seen, err = s.rowsRead(ctx, viewGates, nanos(now))
	if err == nil {
		read, err = s.rowsRead(ctx, readHeads, []int64{gate}, []int16{int16(l)}, []int32{1}, nanos(now))
	}
	return seen, read, err
}

// node is a step of a plan that was carried out.
type node struct {
	Relation string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Removed  float64 `json:"Rows Removed by Filter"`
	Loops    float64 `json:"Actual Loops"`
	Plans    []node
}

// due counts the rows of due that were read.
func (n *node) due() int {
	all := 0
	if n.Relation == "due" {
		all = int((n.Rows + n.Removed) * n.Loops)
	}
	for i := range n.Plans {
		all += n.Plans[i].due()
	}
	return all
}

func (s *Store) rowsRead(ctx context.Context, text string, args ...any) (n int, err error) {
	err = s.rows(ctx, "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) "+text, args, func(r pgx.Rows) error {
		var said []struct{ Plan node }
		if err := r.Scan(&said); err != nil {
			return err
		}
		n = said[0].Plan.due()
		return nil
	})
	return n, err
}

// MostTurns is mostTurns.
const MostTurns = mostTurns

// Turns is turns.
type Turns = turns

// Keep is keep, and so are the others.
func (t *turns) Keep(waiting map[int64]bool) { t.keep(waiting) }
func (t *turns) Last(gate int64) int         { return t.last(gate) }
func (t *turns) Len() int                    { return len(t.lane) }

// Took says that a call of this line was claimed from a gate.
func (t *turns) Took(gate int64, l queue.Line) { t.took([]head{{gate: gate, line: l}}) }
