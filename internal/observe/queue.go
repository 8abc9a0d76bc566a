package observe

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// QueueCount is how many queued calls there are of a kind. Reason is a word of
// a closed set, and empty for calls that have not ended.
type QueueCount struct {
	Endpoint, State, Reason string
	Calls                   int
}

// QueueGate is the gate of a quota key in the queue.
type QueueGate struct {
	Endpoint, Gate string
	Due            time.Time // since when its longest-due call is due; zero: none is
	Closed         bool      // by the provider, a breaker or an operator
}

// QueueRefusal is how many calls were not taken in, by a reason of a closed set.
type QueueRefusal struct {
	Reason string
	Calls  uint64
}

// QueueNumbers is the queue at one moment. What is there is shown also when the
// rest could not be read.
type QueueNumbers struct {
	Counts  []QueueCount
	Gates   []QueueGate
	Refused []QueueRefusal
}

var (
	queueDesc    = desc("queue_calls", "Calls in the queue, by state and, once ended, by reason.", "endpoint", "state", "reason")
	dueDesc      = desc("queue_oldest_due_seconds", "For how long the longest-due call of a quota key has been due.", "endpoint", "gate")
	shutDesc     = desc("queue_gate_closed", "1 while nothing of a quota key is taken out of the queue.", "endpoint", "gate")
	refusedDesc  = desc("queue_refused_total", "Calls that the queue did not take in, by reason.", "reason")
	queueErrDesc = desc("queue_read_errors_total", "Times the numbers of the queue could not be read.")
)

// queuePage is the queue as Prometheus sees it. It is read when it is asked for.
type queuePage struct {
	read   func() (QueueNumbers, error)
	errors prometheus.Counter
}

// Queue adds the numbers of a queue to the metrics; read is called for each
// scrape. It is called once at most.
func (o *Observer) Queue(read func() (QueueNumbers, error)) error {
	p := &queuePage{read: read, errors: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "heed_queue_read_errors_total", Help: "Times the numbers of the queue could not be read.",
	})}
	if err := o.registry.Register(p); err != nil {
		return fmt.Errorf("the registry already has metrics of a queue: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (p *queuePage) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{queueDesc, dueDesc, shutDesc, refusedDesc, queueErrDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *queuePage) Collect(ch chan<- prometheus.Metric) {
	n, err := p.read()
	if err != nil {
		p.errors.Inc()
	}
	ch <- p.errors
	for _, r := range n.Refused {
		ch <- prometheus.MustNewConstMetric(refusedDesc, prometheus.CounterValue, float64(r.Calls), r.Reason)
	}
	now := time.Now()
	for _, c := range n.Counts {
		ch <- gauge(queueDesc, float64(c.Calls), c.Endpoint, c.State, c.Reason)
	}
	for _, g := range n.Gates {
		age, shut := 0.0, 0.0
		if !g.Due.IsZero() {
			age = max(now.Sub(g.Due).Seconds(), 0)
		}
		if g.Closed {
			shut = 1
		}
		ch <- gauge(dueDesc, age, g.Endpoint, g.Gate)
		ch <- gauge(shutDesc, shut, g.Endpoint, g.Gate)
	}
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}
