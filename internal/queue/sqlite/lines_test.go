package sqlite_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/internal/queue/sqlite"
)

// waiting is a queued call as the oracle sees it.
type waiting struct {
	id string
	at time.Time
	n  int // which was enqueued before which
	queue.Line
}

// turns is the order in which all that is due goes, by sorting all of it.
func turns(all []waiting, now time.Time, last int) []waiting {
	due := slices.DeleteFunc(slices.Clone(all), func(w waiting) bool { return w.at.After(now) })
	slices.SortFunc(due, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(queue.Rank(a.at, a.Priority()), queue.Rank(b.at, b.Priority())), cmp.Compare(a.n, b.n))
	})
	return queue.Turns(due, last)
}

// crowd draws calls of a gate, most of them of few tenants.
func crowd(random *rand.Rand, now time.Time, from, n int) (calls []queue.Call, all []waiting) {
	for i := range n {
		c := get(fmt.Sprintf("c%d", from+i))
		c.Tenant = fmt.Sprint("t", int(40*random.Float64()*random.Float64()*random.Float64()))
		c.Priority = random.IntN(3) * random.IntN(4)
		at := now
		if random.IntN(4) == 0 {
			at = now.Add(time.Duration(random.IntN(60)) * time.Second)
			c.NotBefore = at
		}
		calls = append(calls, c)
		all = append(all, waiting{id: c.ID, at: at, n: from + i, Line: queue.LineOf(c.Tenant, c.Priority)})
	}
	return calls, all
}

func TestAClaimIsTheFirstOfAllThatIsDueByTurns(t *testing.T) {
	for seed := range uint64(4) {
		for _, o := range []sqlite.Options{sqlite.Unsynced(options(t)), sqlite.Few(sqlite.Unsynced(options(t)))} {
			random := rand.New(rand.NewPCG(seed, 1))
			s, now := open(t, o), time.Now()
			var all []waiting
			last, n := 0, 0
			for range 60 {
				now = now.Add(time.Duration(random.IntN(5000)) * time.Millisecond)
				calls, more := crowd(random, now, n, random.IntN(30))
				n, all = n+len(calls), append(all, more...)
				for part := range slices.Chunk(calls, 7) {
					if _, err := s.Enqueue(t.Context(), now, part); err != nil {
						t.Fatal(err)
					}
				}
				due := turns(all, now, last)
				due = due[:min(len(due), 1+random.IntN(24))]
				got := claimAt(t, s, now, max(1, len(due)))
				want := make([]string, 0, len(due))
				for _, w := range due {
					want, last = append(want, w.id), w.Lane()
				}
				if diff := gocmp.Diff(got, want); diff != "" {
					t.Fatalf("seed %d, claimed (-got +want):\n%s", seed, diff)
				}
				all = slices.DeleteFunc(all, func(w waiting) bool { return slices.Contains(got, w.id) })
			}
		}
	}
}

// claimAt claims up to n calls and returns their ids.
func claimAt(t *testing.T, s *sqlite.Store, now time.Time, n int) []string {
	t.Helper()
	b, err := s.Claim(t.Context(), now, queue.Ask{Max: n, Lease: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, 0, n)
	for _, c := range b.Claims {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestAClaimThatIsTakenBackTakesNobodysTurn(t *testing.T) {
	for _, o := range []sqlite.Options{sqlite.Unsynced(options(t)), sqlite.Few(sqlite.Unsynced(options(t)))} {
		now := time.Now()
		calls, all := crowd(rand.New(rand.NewPCG(7, 1)), now, 0, 200)
		s := open(t, o)
		for part := range slices.Chunk(calls, 9) {
			if _, err := s.Enqueue(t.Context(), now, part); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Minute)
		var got, want []string
		for _, n := range []int{3, 30, 150, 200} {
			s.TakenBack(t, now, n)
			got = append(got, claimAt(t, s, now, n)...)
		}
		for _, w := range turns(all, now, 0) {
			want = append(want, w.id)
		}
		slices.Sort(want[3:])
		slices.Sort(got[3:])
		if diff := gocmp.Diff(got, want); diff != "" {
			t.Errorf("claimed (-got +want):\n%s", diff)
		}
	}
}

func TestACallWhoseCancellationIsTakenBackGoes(t *testing.T) {
	o := sqlite.Few(sqlite.Unsynced(options(t)))
	s, now := open(t, o), time.Now()
	for _, id := range []string{"a", "b", "c", "d"} {
		c := get(id)
		c.Tenant = id
		enqueue(t, s, c)
	}
	s.Close()
	s = open(t, o)
	s.TakenBack(t, now, 1, "a")
	got := claimAt(t, s, now.Add(time.Minute), 4)
	if slices.Sort(got); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("claimed: got %v, want all four", got)
	}
}

// TestWhenTheNextCallIsDueIsKnownOfEveryLine has calls in the index and in
// memory, of which none is due.
func TestWhenTheNextCallIsDueIsKnownOfEveryLine(t *testing.T) {
	o := sqlite.Few(sqlite.Unsynced(options(t)))
	s, now := open(t, o), time.Now()
	const calls = 12
	for i := range calls {
		c := get(fmt.Sprintf("c%d", i))
		c.Tenant, c.Priority, c.NotBefore = fmt.Sprint("t", i%5), i%10, now.Add(time.Duration(calls-i)*time.Minute)
		if _, err := s.Enqueue(t.Context(), now, []queue.Call{c}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range calls {
		if i == calls/2 {
			s.Close()
			s = open(t, o)
		}
		next := now.Add(time.Duration(i+1) * time.Minute)
		b, err := s.Claim(t.Context(), next.Add(-time.Second), queue.Ask{Max: 8, Lease: time.Hour})
		if err != nil || len(b.Claims) != 0 || !b.Next.Equal(next) {
			t.Fatalf("before %s: got %d calls, next %s, %v", next, len(b.Claims), b.Next, err)
		}
		b, err = s.Claim(t.Context(), next, queue.Ask{Max: 8, Lease: time.Hour})
		if err != nil || len(b.Claims) != 1 || b.Claims[0].ID != fmt.Sprintf("c%d", calls-1-i) {
			t.Fatalf("at %s: got %v, %v, want the one that is due", next, b.Claims, err)
		}
		done := queue.Settlement{ID: b.Claims[0].ID, Lease: b.Claims[0].Lease, Outcome: queue.Outcome{State: queue.Done}}
		if _, err := s.Settle(t.Context(), next, []queue.Settlement{done}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEachGateTellsTheLongestDueCallOfAllItsLines(t *testing.T) {
	s, now := open(t, sqlite.Few(sqlite.Unsynced(options(t)))), time.Now().UTC()
	want := map[string]time.Time{}
	for i := range 40 {
		c := get("")
		at := now.Add(time.Duration(7*i%40) * time.Second)
		c.Gate, c.Tenant, c.Priority, c.NotBefore = fmt.Sprint("k", i%4), fmt.Sprint("t", i%6), i%10, at
		if was, ok := want[c.Gate]; !ok || at.Before(was) {
			want[c.Gate] = at
		}
		if _, err := s.Enqueue(t.Context(), now, []queue.Call{c}); err != nil {
			t.Fatal(err)
		}
	}
	gates, err := s.Gates(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]time.Time{}
	for _, g := range gates {
		got[g.Key] = g.Due
	}
	if diff := gocmp.Diff(got, want); diff != "" {
		t.Errorf("due (-got +want):\n%s", diff)
	}
}
