package check

import (
	"slices"
	"sync"
	"time"
)

// beat is how often the pulse of the machine is felt.
const beat = 20 * time.Millisecond

// pulse feels how late this machine wakes those who sleep. Where it is late, all
// pauses look as if they were drawn by chance.
type pulse struct {
	over chan struct{}
	ends sync.WaitGroup

	mu    sync.Mutex
	beats []pulseBeat
}

type pulseBeat struct {
	at   time.Time
	late time.Duration
}

// newPulse begins to feel; end ends it.
func newPulse() *pulse {
	p := &pulse{over: make(chan struct{})}
	p.ends.Go(p.feel)
	return p
}

func (p *pulse) feel() {
	t := time.NewTimer(beat)
	defer t.Stop()
	for {
		began := time.Now()
		t.Reset(beat)
		select {
		case <-t.C:
		case <-p.over:
			return
		}
		now := time.Now()
		p.mu.Lock()
		p.beats = append(p.beats, pulseBeat{now, now.Sub(began) - beat})
		p.mu.Unlock()
	}
}

func (p *pulse) end() {
	close(p.over)
	p.ends.Wait()
}

// late is how much one beat of ten since then was late, at least.
func (p *pulse) late(since time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []time.Duration
	for _, b := range p.beats {
		if b.at.After(since) {
			all = append(all, b.late)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)*9/10]
}
