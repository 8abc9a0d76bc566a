package postgres

import (
	"sync"
	"time"
)

// doors knows when calls may be taken in without a look at what is there, and
// gives each its place. The zero value looks first.
type doors struct {
	bounded bool // there may be only so many calls

	mu   sync.Mutex
	last int64 // place
	// wary is how many groups are still to look since the last that met a
	// known id or key.
	wary int
	// spare is how many calls may be taken in without counting those that are
	// there, which were counted then.
	spare   int
	counted time.Time
}

const (
	// wariness is how many groups look after one has met something.
	wariness = 64
	// Of the room that was counted a store fills a part unseen: so many gateways
	// that do so at once do not exceed the bound.
	roomParts = 16
	countFor  = time.Second
)

// mayBeBlind tells whether n calls may be taken in without a look.
func (d *doors) mayBeBlind(n int, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.wary > 0 {
		d.wary--
		return false
	}
	if !d.bounded {
		return true
	}
	if n > d.spare || now.Sub(d.counted) > countFor {
		return false
	}
	d.spare -= n
	return true
}

// saw says that there was room for so many calls.
func (d *doors) saw(room int, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spare, d.counted = room/roomParts, now
}

// met says that a group has met something.
func (d *doors) met() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wary = wariness
}

// places returns the first of n places in the order of calls: that is the time
// on the clock, or behind the latest. Those of two gateways may be the same
// once in a while; then the server refuses the group, and it gets others.
func (d *doors) places(n int) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := max(time.Now().UnixNano(), d.last+1)
	d.last = first + int64(n) - 1
	return first
}
