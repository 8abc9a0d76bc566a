package admit

import (
	"math"
	"time"
)

// history counts requests in slots of time, so that the rate over any recent
// span can be told.
type history struct {
	slots  [512]uint16
	start  int64 // number of the first slot that counts
	latest int64
	total  uint64
}

const slotTime = 10 * time.Millisecond

func slotOf(t time.Time) int64 { return t.UnixNano() / int64(slotTime) }

func (h *history) at(n int64) *uint16 { return &h.slots[n%int64(len(h.slots))] }

// oldest is the first slot that has not been used again.
func (h *history) oldest() int64 { return h.latest - int64(len(h.slots)) + 1 }

// holds tells whether slot n, and as much again before it, is still there.
func (h *history) holds(n int64) bool { return h.latest-n < int64(len(h.slots))/2 }

func (h *history) add(now time.Time) {
	n := slotOf(now)
	if h.start == 0 {
		h.start, h.latest = n, n
	}
	for i := max(h.latest+1, n-int64(len(h.slots))+1); i <= n; i++ {
		*h.at(i) = 0
	}
	h.latest = max(h.latest, n)
	h.start = max(h.start, h.oldest())
	if c := h.at(h.latest); *c < math.MaxUint16 {
		*c++
	}
	h.total++
}

// drop forgets a request that left at t.
func (h *history) drop(t time.Time) {
	h.total -= min(h.total, 1)
	if n := slotOf(t); n >= h.oldest() && n <= h.latest && *h.at(n) > 0 {
		*h.at(n)--
	}
}

// restart forgets the spans before the newest slot.
func (h *history) restart() {
	if h.start != 0 {
		h.start = h.latest + 1
	}
}

// until is how many requests left in the slot of t and before.
func (h *history) until(t time.Time) uint64 {
	n := h.total
	for i := h.latest; i > max(slotOf(t), h.oldest()-1); i-- {
		n -= min(n, uint64(*h.at(i)))
	}
	return n
}

// excess is by how much the requests from a slot until t exceed rate r, over
// the time for which that is most.
func (h *history) excess(from int64, t time.Time, r float64) float64 {
	most, n := 0.0, 0.0
	for i := min(slotOf(t), h.latest); i >= max(from, h.oldest(), 1); i-- {
		n += float64(*h.at(i))
		begin := time.Unix(0, i*int64(slotTime))
		most = max(most, n-r*max(t.Sub(begin).Seconds(), 0))
	}
	return most
}

// mean is the rate over all slots, in requests per second.
func (h *history) mean() float64 {
	var n float64
	for i := h.start; i <= h.latest; i++ {
		n += float64(*h.at(i))
	}
	between := time.Duration(h.latest-h.start+1) * slotTime
	return n / max(between.Seconds(), slotTime.Seconds())
}
