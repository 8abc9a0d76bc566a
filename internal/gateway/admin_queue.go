package gateway

import (
	"context"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// shownQueue is the queue as a whole.
type shownQueue struct {
	Depth  int          `json:"depth"` // queued or running
	Oldest time.Time    `json:"oldest_due,omitzero"`
	Groups []shownCount `json:"counts"`
	Gates  []shownGate  `json:"gates"`
}

type shownCount struct {
	Endpoint string `json:"endpoint"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Calls    int    `json:"calls"`
}

type shownGate struct {
	Endpoint string    `json:"endpoint"`
	Gate     string    `json:"gate"`
	Closed   time.Time `json:"closed_until,omitzero"`
	Source   string    `json:"source,omitempty"`
	Paused   bool      `json:"paused,omitempty"`
	Limit    int       `json:"limit,omitempty"`
	Queued   int       `json:"queued"`
	Running  int       `json:"running"`
	Due      time.Time `json:"due,omitzero"` // of its longest-due call; to come: it waits
}

func shownGateOf(g *queue.Gate, now time.Time) shownGate {
	s := shownGate{g.Endpoint, g.Key, utc(g.Closed), g.Source, g.Paused, g.Limit, g.Queued, g.Running, utc(g.Due)}
	if !g.Closed.After(now) {
		s.Closed, s.Source = time.Time{}, ""
	}
	return s
}

// patient is for how long the store is asked who waits.
const patient = 2 * time.Second

// waits are the gates of the queue behind which calls wait.
func (l *Later) waits(ctx context.Context) ([]shownGate, error) {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	gates, err := l.Store.Gates(ctx)
	list, now := []shownGate{}, time.Now()
	for i := range gates {
		if g := &gates[i]; g.Queued > 0 && !Internal(g) {
			list = append(list, shownGateOf(g, now))
		}
	}
	return list, err
}

func (d *desk) queue() error {
	counts, err := d.Store.Counts(d.r.Context())
	if err != nil {
		return err
	}
	gates, err := d.Store.Gates(d.r.Context())
	if err != nil {
		return err
	}
	out, now := shownQueue{Groups: []shownCount{}, Gates: []shownGate{}}, time.Now()
	for _, c := range counts {
		if Watchman(c.Endpoint, c.State) {
			continue
		}
		out.Groups = append(out.Groups, shownCount{c.Endpoint, c.State.String(), c.Reason, c.N})
		if !c.State.Ended() {
			out.Depth += c.N
		}
	}
	for _, g := range gates {
		if Internal(&g) {
			continue
		}
		if out.Gates = append(out.Gates, shownGateOf(&g, now)); !g.Due.IsZero() && !g.Due.After(now) && (out.Oldest.IsZero() || g.Due.Before(out.Oldest)) {
			out.Oldest = utc(g.Due)
		}
	}
	reply(d.w, out)
	return nil
}
