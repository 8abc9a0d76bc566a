package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/postgres"
)

// queued tells how many calls wait by their gates, and in all.
func queued(t *testing.T, s *postgres.Store) (byGate map[string]int, all int) {
	t.Helper()
	gates, err := s.Gates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counts, err := s.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byGate = map[string]int{}
	for _, g := range gates {
		byGate[g.Key] = g.Queued
	}
	for _, c := range counts {
		if c.State == queue.Queued {
			all += c.N
		}
	}
	return byGate, all
}

// The list of arrivals of a stripe has room for 96 entries.
func TestCallsThatArriveAreCountedThoughTheirListIsFull(t *testing.T) {
	o := options(t)
	s := open(t, o)
	want := map[string]int{}
	for n := range 30 {
		var calls []queue.Call
		for priority := range 10 {
			gate := fmt.Sprintf("k%d", (n+priority)%4)
			c := get("", gate)
			c.Priority = priority
			calls = append(calls, c)
			want[gate]++
		}
		enqueue(t, s, calls...)
		if _, all := queued(t, s); all != 10*(n+1) {
			t.Fatalf("after %d groups: got %d calls queued, want %d", n+1, all, 10*(n+1))
		}
	}
	s.Close()
	if got, _ := queued(t, open(t, o)); !cmp.Equal(got, want) {
		t.Errorf("another store: got %v, want %v", got, want)
	}
}

func TestArrivalsThatWereSettledAreCountedNoMore(t *testing.T) {
	s := open(t, options(t))
	for range 12 {
		enqueue(t, s, get("", "a"), get("", "b"))
	}
	var ends []queue.Settlement
	for _, c := range claim(t, s, time.Now()) {
		ends = append(ends, queue.Settlement{ID: c.ID, Lease: c.Lease, Outcome: queue.Outcome{State: queue.Done}})
	}
	if lost, err := s.Settle(context.WithoutCancel(t.Context()), time.Now(), ends); err != nil || len(lost) > 0 || len(ends) != 24 {
		t.Fatalf("settle %d calls: got lost %v, %v, want 24 settled", len(ends), lost, err)
	}
	got, all := queued(t, s)
	if want := map[string]int{"a": 0, "b": 0}; !cmp.Equal(got, want) || all != 0 {
		t.Errorf("got %v and %d in all, want none", got, all)
	}
}

func TestListsOfArrivalsDoNotGrowWithEachStart(t *testing.T) {
	o := options(t)
	lines := everyLine()[:postgres.Longest]
	for range 20 {
		s := open(t, o)
		enqueue(t, s, lines...)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var got int
	err := newRival(t, o).QueryRow(t.Context(), "SELECT max(cardinality(n)) FROM arrivals").Scan(&got)
	if err != nil || got > postgres.Longest {
		t.Errorf("longest list after many starts: got %d, %v, want at most %d", got, err, postgres.Longest)
	}
}
