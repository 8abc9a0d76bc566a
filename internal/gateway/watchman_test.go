package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/internal/queue"
)

// watchmen counts those that stand in the queue.
func (l *later) watchmen() int {
	l.Helper()
	page, err := l.store.List(l.Context(), queue.Filter{Endpoint: watchEndpoint, States: []queue.State{queue.Queued}})
	if err != nil {
		l.Fatal(err)
	}
	return len(page.Calls)
}

// hook asks for a callback.
var hook = []string{"Heed-Callback", "https://hooks.test/h"}

func TestTheEndOfACallThatIsCancelledIsToldAtOnce(t *testing.T) {
	for name, cancel := range map[string]func(l *later, at string){
		"by its caller": func(l *later, at string) { l.do(l.Gateway, "DELETE", at, "") },
		"by an operator": func(l *later, at string) {
			l.operate("POST", "/_heed/calls/"+l.id(at)+"/cancel", "", &opened{})
		},
		"with others": func(l *later, at string) {
			l.operate("POST", "/_heed/calls/cancel", `{"filter":{"endpoint":"api"}}`, &done{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withCallbacks(t, func(l *later) {
				at := l.async("GET", "/api/x", "", append(hook, "Heed-Not-Before", "7200")...)
				cancel(l, at)
				time.Sleep(2 * time.Second)
				if diff := cmp.Diff(l.told(), []string{"call.cancelled canceled"}); diff != "" || l.watchmen() != 0 {
					t.Errorf("with %d watchmen left, told (-got +want):\n%s", l.watchmen(), diff)
				}
			})
		})
	}
}

func TestACallThatIsCancelledTwiceIsToldOfTwice(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		at := l.async("GET", "/api/x", "", hook...)
		for range 2 {
			l.do(l.Gateway, "DELETE", at, "")
			time.Sleep(2 * time.Second)
			l.operate("POST", "/_heed/calls/"+l.id(at)+"/replay", "", &opened{})
			if n := l.watchmen(); n != 1 {
				t.Errorf("%d watchmen stand beside a call that is sent again, want 1", n)
			}
		}
		if diff := cmp.Diff(l.told(), []string{"call.cancelled canceled", "call.cancelled canceled"}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
	})
}

// crashed is a write that a crash cut off.
func (l *later) crashed(path string) (at string) {
	l.Helper()
	at = l.async("POST", path, "b", append(hook, "Heed-Not-Before", "60")...)
	l.worker.Stop()
	time.Sleep(time.Minute)
	batch, err := l.store.Claim(l.Context(), time.Now(), queue.Ask{Worker: "w", Max: 10, Lease: time.Second})
	if err != nil || len(batch.Claims) == 0 {
		l.Fatalf("got %d claims, %v", len(batch.Claims), err)
	}
	if err := l.store.Close(); err != nil {
		l.Fatal(err)
	}
	l.open()
	if s := l.end(at); s.State != "unknown" || s.Reason != queue.ReasonLeaseLost {
		l.Fatalf("got %s (%s)", s.State, s.Reason)
	}
	return at
}

func TestAWriteThatACrashCutOffIsToldOf(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.async("POST", "/api/x", "b", append(hook, "Heed-Not-Before", "60")...)
		time.Sleep(2 * time.Minute) // it is sent, and its end is told
		l.crashed("/api/y")
		for range 2 {
			if err := l.TellEnds(l.Context(), &Ends{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if diff := cmp.Diff(l.told(), []string{"call.done ", "call.unknown lease-lost"}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
	})
}

func TestAnEndIsToldThoughAnotherWasPurgedInTheMeantime(t *testing.T) {
	withCallbacks(t, func(l *later) {
		var known Ends
		tell := func() {
			if err := l.TellEnds(l.Context(), &known); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		first := l.crashed("/api/x")
		tell()
		l.operate("POST", "/_heed/calls/purge", `{"filter":{"ids":["`+l.id(first)+`"]}}`, &done{})
		l.crashed("/api/y")
		tell()
		if diff := cmp.Diff(l.told(), []string{"call.unknown lease-lost", "call.unknown lease-lost"}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
		if len(known.known) != 1 {
			t.Errorf("%d ends are known, want that of the call that is there", len(known.known))
		}
	})
}

func TestAnEndThatACrashTookBackIsNotTold(t *testing.T) {
	for name, hint := range map[string]http.Header{"its key waits": {"Retry-After": {"100"}}, "it waits": nil} {
		t.Run(name, func(t *testing.T) {
			withCallbacks(t, func(l *later) {
				var tries atomic.Int32
				l.api = func(r *http.Request, _ int) (int, http.Header, string) {
					if r.URL.Host != "api.test" {
						return 204, nil, ""
					}
					switch tries.Add(1) {
					case 1:
						return 200, nil, "hello"
					case 2:
						return 503, hint.Clone(), ""
					}
					return 400, nil, ""
				}
				at := l.async("PUT", "/api/x", "b", append(hook, "Heed-Not-Before", "60")...)
				l.worker.Stop()
				time.Sleep(time.Minute)
				batch, err := l.store.Claim(l.Context(), time.Now(), queue.Ask{Worker: "w", Max: 10, Lease: time.Hour})
				if err != nil || len(batch.Claims) != 1 {
					t.Fatalf("got %d claims, %v", len(batch.Claims), err)
				}
				if o := l.Send(l.Context(), batch.Claims[0].Call); o.State != queue.Done {
					t.Fatalf("the first attempt ended as %s", o.State)
				}
				if err := l.store.Close(); err != nil { // before that was stored
					t.Fatal(err)
				}
				l.open()
				if s := l.end(at); s.State != "dead" {
					t.Fatalf("got %s (%s)", s.State, s.Reason)
				}
				time.Sleep(5 * time.Minute)
				if diff := cmp.Diff(l.told(), []string{"call.dead permanent"}); diff != "" {
					t.Errorf("told (-got +want):\n%s", diff)
				}
			})
		})
	}
}

func TestAReceiverThatIsDownForLongerThanTheAnswerIsKeptIsToldAllTheSame(t *testing.T) {
	withCallbacks(t, func(l *later) {
		var well atomic.Bool
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if r.URL.Host == "hooks.test" && !well.Load() {
				return 503, nil, "down"
			}
			return 200, nil, "x"
		}
		at := l.async("GET", "/api/x", "", hook...)
		l.end(at)
		time.Sleep(3 * time.Hour)
		if _, err := l.store.Sweep(l.Context(), time.Now(), 100); err != nil {
			t.Fatal(err)
		}
		well.Store(true)
		time.Sleep(time.Hour)
		if told := l.told(); l.do(l.Gateway, "GET", at, "").StatusCode != 404 || told[len(told)-1] != "call.done " {
			t.Errorf("got %q", told)
		}
	})
}

func TestAnEndThatCannotBeToldAnyMoreIsToldToAPerson(t *testing.T) {
	withCallbacks(t, func(l *later) {
		at := l.async("GET", "/api/x", "", append(hook, "Heed-Budget", "10h", "Heed-Not-Before", "7200")...)
		if err := l.store.Cancel(l.Context(), time.Now(), l.id(at)); err != nil { // and the process died before it could say so
			t.Fatal(err)
		}
		if _, err := l.store.Purge(l.Context(), []string{l.id(at)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		var page listed
		l.operate("GET", "/_heed/calls?reason=erased", "", &page)
		if len(page.Calls) != 1 || !strings.Contains(page.Calls[0].Note.What, l.id(at)) || !strings.Contains(l.logged(), `"msg":"queued call broke"`) {
			t.Errorf("got %+v and the log\n%s", page, l.logged())
		}
	})
}

func TestAWatchmanIsNoCallOfAnybodys(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.operate("POST", "/_heed/endpoints/api/pause", "", &endpointStanding{})
		for range 3 {
			l.async("GET", "/api/x", "", hook...)
		}
		at := l.async("GET", "/api/x", "", hook...)
		l.do(l.Gateway, "DELETE", at, "")
		time.Sleep(2 * time.Second)
		var page listed
		l.operate("GET", "/_heed/calls?limit=2", "", &page)
		n := len(page.Calls)
		for page.Next != "" {
			next := page.Next
			page = listed{}
			l.operate("GET", "/_heed/calls?limit=2&after="+next, "", &page)
			n += len(page.Calls)
		}
		var q shownQueue
		l.operate("GET", "/_heed/queue", "", &q)
		var out done
		l.operate("POST", "/_heed/calls/cancel", `{"filter":{},"dry_run":true}`, &out)
		if n != 5 || q.Depth != 3 || len(q.Gates) != 3 || out.Count != 3 {
			t.Errorf("listed %d, a depth of %d with %d gates, %d to cancel; want four calls and a callback, 3 with 3 gates, and 3", n, q.Depth, len(q.Gates), out.Count)
		}
	})
}

func TestACallThatMadeTheGatewayFailIsToldOf(t *testing.T) {
	withCallbacks(t, func(l *later) {
		l.api = func(r *http.Request, _ int) (int, http.Header, string) {
			if r.URL.Host == "api.test" {
				panic("a defect")
			}
			return 204, nil, ""
		}
		l.end(l.async("POST", "/api/x", "b", hook...))
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff(l.told(), []string{"call.unknown lease-lost"}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
	})
}

// full is a store without room.
type full struct {
	Store
	on atomic.Bool
}

func (f *full) Enqueue(ctx context.Context, now time.Time, calls []queue.Call) ([]queue.Receipt, error) {
	if f.on.Load() {
		return nil, queue.ErrFull
	}
	return f.Store.Enqueue(ctx, now, calls)
}

func TestACallbackThatCouldNotBeQueuedIsToldByItsWatchman(t *testing.T) {
	withCallbacks(t, func(l *later) {
		disk := &full{Store: l.store}
		l.set.Later.Store = disk
		at := l.async("POST", "/api/x", "b", append(hook, "Heed-Budget", "10m", "Heed-Not-Before", "60")...)
		disk.on.Store(true)
		l.end(at)
		if len(l.told()) != 0 || !strings.Contains(l.logged(), "callback not queued") {
			t.Fatalf("got %q and the log\n%s", l.told(), l.logged())
		}
		disk.on.Store(false)
		time.Sleep(20 * time.Minute)
		if diff := cmp.Diff(l.told(), []string{"call.done "}); diff != "" {
			t.Errorf("told (-got +want):\n%s", diff)
		}
	})
}

func TestACallIsNotTakenForTheWatchmanOfAnother(t *testing.T) {
	withCallbacks(t, func(l *later) {
		hand := func(id, more string) answered {
			return l.do(l.Gateway, "POST", "/_heed/calls", `{"heed":1,"endpoint":"api","method":"GET","path":"/x","id":"`+id+`"`+more+`}`)
		}
		own := strings.TrimLeft(late, "~-")
		first := hand("job-"+own, `,"not_before":"`+time.Now().Add(time.Hour).Format(time.RFC3339)+`"`)
		hand("job", `,"callback":"https://hooks.test/h"`)
		time.Sleep(2 * time.Second)
		if s := l.ask(first.Header.Get("Location")); s.State != "waiting" {
			t.Errorf("the call beside it is %s %s", s.State, s.Reason)
		}
		for _, id := range []string{"job" + late, "job" + endOf(&queue.Facts{})} {
			wantProblem(t, hand(id, ""), 400, "bad-envelope")
		}
	})
}
