package windows

import (
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// at asks at each of the given instants and returns status and Retry-After.
func at(s *Server, instants ...time.Duration) (got []string) {
	begin := time.Now()
	for _, t := range instants {
		time.Sleep(t - time.Since(begin))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		got = append(got, w.Result().Status[:3]+w.Header().Get("Retry-After"))
	}
	return got
}

func check(t *testing.T, c Config, want []string, instants ...time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		if got := at(New(c), instants...); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

const s = time.Second

func TestAFixedWindowForgetsAllAtItsEnd(t *testing.T) {
	check(t, Config{Variant: Fixed, Limit: 2, Window: s}, []string{"200", "200", "429", "200", "200", "429"},
		0, s*9/10, s*95/100, s, s, s)
}

func TestASlidingWindowForgetsOneByOne(t *testing.T) {
	check(t, Config{Variant: Sliding, Limit: 2, Window: s}, []string{"200", "200", "200", "429", "200"},
		0, s*9/10, s, s, s*19/10)
}

func TestAHintIsTheTimeUntilThereIsRoom(t *testing.T) {
	check(t, Config{Variant: FixedHint, Limit: 1, Window: 3 * s}, []string{"200", "4293", "4291", "200"}, 0, s/2, 2*s, 3*s)
	check(t, Config{Variant: SlidingHint, Limit: 1, Window: 3 * s}, []string{"200", "4292", "200"}, 0, s, 3*s)
}

func TestAnOutageCountsNothing(t *testing.T) {
	check(t, Config{Variant: Sliding, Limit: 1, Window: s, OutageAt: s, OutageFor: s}, []string{"200", "503", "200"}, 0, s, 2*s)
}

func TestTheMinimumIsThatOfAnEvenPace(t *testing.T) {
	c := Config{Limit: 200, Window: s, OutageAt: 3 * s, OutageFor: 3 * s, Service: s / 10}
	if got, want := c.Minimum(2000), 13*s+s/10; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}
