package gateway

import (
	"testing"
	"time"

	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/policy"
)

// beside makes another gateway on the same queue. follow has it look there.
func (l *later) beside() (other *Gateway, follow func()) {
	l.Helper()
	other = New(l.set)
	return other, func() {
		l.Helper()
		time.Sleep(time.Millisecond)
		at := time.Now()
		gates, err := l.store.Gates(l.Context())
		if err != nil {
			l.Fatal(err)
		}
		other.Follow(gates, at)
	}
}

func TestWhatAnOperatorHoldsOnOneGatewayIsHeldOnTheOthers(t *testing.T) {
	for path, c := range map[string]struct {
		body string
		want Mode
	}{
		"pause": {"", Paused}, "hold": {`{"for":"10m"}`, Paused}, "drain": {"", Draining},
		"breaker": {`{"state":"open","for":"1m"}`, ForcedOpen},
	} {
		t.Run(path, func(t *testing.T) {
			bubble(t, nil, func(l *later) {
				other, follow := l.beside()
				l.operate("POST", "/_heed/endpoints/api/"+path, c.body, &endpointStanding{})
				follow()
				here, _ := l.Held("api")
				if h, held := other.Held("api"); !held || h.Mode != c.want || !h.Until.Equal(here.Until) {
					t.Errorf("got %+v, want %s until %v", h, c.want, here.Until)
				}
				l.operate("POST", "/_heed/endpoints/api/resume", "", &endpointStanding{})
				follow()
				if h, held := other.Held("api"); held {
					t.Errorf("it is still held: %+v", h)
				}
			})
		})
	}
}

func TestWhatWasChangedHereIsNotUndoneByAnOlderLook(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/resume", "", &endpointStanding{})
		time.Sleep(time.Second)
		at := time.Now()
		gates, err := l.store.Gates(l.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		l.Follow(gates, at)
		if _, held := l.Held("api"); !held {
			t.Error("an older look has resumed it")
		}
	})
}

func TestAGatewayThatIsHeldDoesNotCloseTheGateOfTheOthers(t *testing.T) {
	bubble(t, nil, func(l *later) {
		l.Hold("api", Hold{Mode: Paused}) // it does not know yet that the endpoint was resumed elsewhere
		l.async("GET", "/api/x", "")
		time.Sleep(500 * time.Millisecond)
		gates, err := l.store.Gates(l.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gates {
			if g.Closed.After(time.Now()) {
				t.Errorf("the gate %s %s is closed until %v", g.Endpoint, g.Key, g.Closed)
			}
		}
	})
}

func TestAGatewayWithoutAnEndpointDoesNotCloseItsGateForThoseWhoHaveIt(t *testing.T) {
	bubble(t, func(s *Settings, _ *policy.Policy) { s.Later.Shared = true }, func(l *later) {
		c := queue.Call{Facts: queue.Facts{Endpoint: "other", Gate: MainGate, Method: "GET"}, Request: queue.Request{Path: "/"}}
		if out := l.Send(l.Context(), c); out.State != queue.Queued || out.Scope != queue.ScopeCall {
			t.Errorf("got %+v", out)
		}
	})
}
