package stock_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

// inside runs do within an operation of a pack called shop, asked for at path.
func inside(t *testing.T, path string, do func(*sim.Exchange)) {
	t.Helper()
	ran := false
	p := sim.Pack{Name: "shop", Operations: []sim.Operation{{Route: "GET /{rest...}", Do: func(x *sim.Exchange) sim.Answer {
		ran = true
		do(x)
		return sim.JSON(200, nil)
	}}}}
	a, err := sim.New(sim.World{Packs: []sim.Pack{p}})
	if err != nil {
		t.Fatal(err)
	}
	a.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	if !ran {
		t.Fatalf("%s did not reach the operation", path)
	}
}

func shelf(x *sim.Exchange) stock.Stock[string] {
	return stock.Open(x, stock.Kind[string]{
		Name: "books", Made: 3,
		ID: func(n int) string { return "b" + strconv.Itoa(n) },
		Number: func(id string) int {
			n, _ := strconv.Atoi(strings.TrimPrefix(id, "b"))
			return n
		},
		Make: func(n int) string { return fmt.Sprintf("book %d", n) },
	})
}

func TestWhatIsWrittenLiesOverWhatWasThere(t *testing.T) {
	inside(t, "/", func(x *sim.Exchange) {
		s := shelf(x)
		s.Put("b2", "another")
		s.Put("new", "a new one")
		s.Delete("b1")
		var got []string
		for id, v := range s.All() {
			got = append(got, id+"="+v)
		}
		if diff := cmp.Diff(got, []string{"b2=another", "b3=book 3", "new=a new one"}); diff != "" {
			t.Error(diff)
		}
		if s.Len() != 3 {
			t.Errorf("got a length of %d, want 3", s.Len())
		}
	})
}

func TestWhatIsDeletedCanBeWrittenAgain(t *testing.T) {
	inside(t, "/", func(x *sim.Exchange) {
		s := shelf(x)
		first, second := s.Delete("b1"), s.Delete("b1")
		s.Put("b1", "back")
		if got, ok := s.Get("b1"); !first || second || !ok || got != "back" {
			t.Errorf("got %v %v, then %q %v", first, second, got, ok)
		}
	})
}

func TestAnIDInAnotherSpellingIsAnother(t *testing.T) {
	inside(t, "/", func(x *sim.Exchange) {
		for _, id := range []string{"b01", "b0", "b4", "1", ""} {
			if v, ok := shelf(x).Get(id); ok {
				t.Errorf("%q: got %q", id, v)
			}
		}
	})
}

func TestAPickIsTheSameEveryTime(t *testing.T) {
	inside(t, "/", func(x *sim.Exchange) {
		var first, again []string
		for n := range 50 {
			first, again = append(first, stock.Title(x, n)), append(again, stock.Title(x, n))
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Error(diff)
		}
		slices.Sort(first)
		if n := len(slices.Compact(first)); n < 20 {
			t.Errorf("got %d titles for 50 books", n)
		}
	})
}
