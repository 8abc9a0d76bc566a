package app

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heedproject/heed/internal/gateway"
	"github.com/heedproject/heed/internal/queue"
	"github.com/heedproject/heed/mask"
)

// trouble is why the queue does not do what it is for. It is told once when it
// begins, each minute while calls are refused for it, and once when it is over.
type trouble struct {
	log *slog.Logger

	any       atomic.Bool // for calls that are taken in, which rarely meet any
	mu        sync.Mutex
	stretches [len(troubles)]stretch
	refused   [len(troubles)]uint64
}

// stretch is one stretch of trouble.
type stretch struct {
	since time.Time // zero: there is none
	last  time.Time // met
	told  time.Time // kept when it is over: what comes and goes is told once a minute too
	calls uint64    // refused in it
	err   error
}

// tellEvery is how often a stretch is told while it lasts.
const tellEvery = time.Minute

// quietFor is for how long nobody must have met trouble for it to be looked into:
// where small calls find room and large ones do not, it comes and goes.
const quietFor = 10 * time.Second

// kindOfTrouble is one of gateway.Refusals, and what is said of it.
type kindOfTrouble struct{ reason, alert, msg, words, advice, over string }

var troubles = [...]kindOfTrouble{
	{gateway.RefusedStorage, "queue_fails", "the queue fails", "its storage fails",
		"calls that are to be answered later are refused; those whose callers wait go on: look at the disk of the queue", "the queue works again"},
	{gateway.RefusedFull, "queue_full", "the queue is full", "it holds as many calls as it may (queue.max.calls)",
		"calls that are to be answered later are refused: hand over fewer, cancel some (heed calls cancel), or raise queue.max.calls", "the queue has room again"},
	{gateway.RefusedClosed, "", "", "", "", ""}, // heed ends, which is told anyway
}

// taken is told of each call that was handed in.
func (t *trouble) taken(reason string, err error) {
	if reason != "" {
		t.meets(time.Now(), reason, err, 1)
	} else if t.any.Load() {
		t.over(gateway.RefusedStorage)
		t.over(gateway.RefusedFull)
	}
}

// meets notes that calls are refused for a reason, or, with none, that something
// else fails for it.
func (t *trouble) meets(now time.Time, reason string, err error, calls uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range troubles {
		k, s := &troubles[i], &t.stretches[i]
		if k.reason != reason {
			continue
		}
		t.refused[i] += calls
		if k.alert == "" {
			return
		}
		s.calls, s.err, s.last = s.calls+calls, err, now
		if s.since.IsZero() {
			s.since = now
			t.any.Store(true)
		}
		if now.Sub(s.told) < tellEvery || calls == 0 && !s.told.Before(s.since) {
			return
		}
		s.told = now
		t.log.Error(k.msg, slog.String("kind", "alert"), slog.String("alert", k.alert), slog.String("error", said(err)),
			slog.Uint64("refused", s.calls), slog.String("advice", k.advice))
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return mask.Error(err)
}

// over ends a stretch, if there is one.
func (t *trouble) over(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	any := false
	for i := range troubles {
		k, s := &troubles[i], &t.stretches[i]
		if k.reason == reason && !s.since.IsZero() {
			if !s.told.Before(s.since) {
				t.log.Info(k.over, slog.String("kind", "alert"), slog.String("alert", k.alert),
					slog.Uint64("refused", s.calls), slog.Duration("lasted", time.Since(s.since)))
			}
			*s = stretch{told: s.told}
		}
		any = any || !s.since.IsZero()
	}
	t.any.Store(any)
}

// quiet tells whether there is trouble that was not met for a while.
func (t *trouble) quiet(now time.Time, reason string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range troubles {
		if s := &t.stretches[i]; troubles[i].reason == reason {
			return !s.since.IsZero() && now.Sub(s.last) >= quietFor
		}
	}
	return false
}

// words say what is wrong now. Empty: nothing.
func (t *trouble) words() string {
	if !t.any.Load() {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []string
	for i := range troubles {
		s := &t.stretches[i]
		switch {
		case s.since.IsZero():
		case errors.Is(s.err, queue.ErrFull):
			all = append(all, "its disk is full")
		default:
			all = append(all, troubles[i].words)
		}
	}
	return strings.Join(all, ", and ")
}

// counts are the calls refused so far, in the order of troubles.
func (t *trouble) counts() [len(troubles)]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused
}
