package observe

import (
	"math"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// amplified is the window that the amplification gauges look at.
const amplified = time.Minute

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("heed_"+name, help, labels, nil)
}

var (
	callsDesc     = desc("calls_total", "Calls that ended, by class of the last answer and by reason (none: success).", "endpoint", "class", "reason")
	attemptsDesc  = desc("attempts_total", "Attempts that ended, by what the answer meant and its status.", "endpoint", "class", "status_group")
	retriesDesc   = desc("retries_total", "Attempts that another one followed, by class.", "endpoint", "class")
	giveupsDesc   = desc("giveups_total", "Calls that ended although trying again might have helped.", "endpoint", "reason")
	waitedDesc    = desc("wait_seconds_total", "Time that calls waited, by the source of their longest wait.", "endpoint", "source")
	waitsDesc     = desc("waits_total", "Calls that waited, by the source of their longest wait.", "endpoint", "source")
	wireDesc      = desc("wire_attempts_total", "Requests really sent, resends of the HTTP stack included.", "endpoint")
	actualDesc    = desc("amplification_actual", "Requests on the wire per call over the last minute.", "endpoint")
	effectiveDesc = desc("amplification_effective", "Requests on the wire per successful call over the last minute; +Inf: none succeeded.", "endpoint")
	breakerDesc   = desc("breaker_state", "1 for the state of the breaker that changed last; half open: its time is up, and a probe may leave.", "endpoint", "state")
	tripsDesc     = desc("breaker_trips_total", "Times a breaker opened.", "endpoint")
	renewalsDesc  = desc("token_renewals_total", "Renewals of a credential.", "endpoint", "result")
	badHintsDesc  = desc("retry_after_invalid_total", "Retry-After fields that could not be read.", "endpoint")
	quotaDesc     = desc("quota_remaining", "Quota left, as the server last told for any key of the endpoint.", "endpoint")
	healthyDesc   = desc("healthy_latency_seconds", "How long healthy answers took.", "endpoint")
	alertsDesc    = desc("alerts_total", "Alerts raised from the stream of events.", "endpoint", "alert")
	linesDesc     = desc("log_lines_dropped_total", "Log lines dropped because the writer could not follow.")
	writesDesc    = desc("log_write_errors_total", "Writes to the log that failed.")
	spansDesc     = desc("spans_dropped_total", "Steps that got no span because the collector could not follow.")
)

// page is the Observer as Prometheus sees it.
type page struct{ *Observer }

// newRegistry returns reg, or a registry with what every Go process tells.
func newRegistry(reg *prometheus.Registry) *prometheus.Registry {
	if reg != nil {
		return reg
	}
	reg = prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// Handler serves the metrics; it belongs on the admin listener.
func (o *Observer) Handler() http.Handler {
	return promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{})
}

// Describe implements prometheus.Collector.
func (p page) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		callsDesc, attemptsDesc, retriesDesc, giveupsDesc, waitedDesc, waitsDesc, wireDesc,
		actualDesc, effectiveDesc, breakerDesc, tripsDesc, renewalsDesc, badHintsDesc,
		quotaDesc, healthyDesc, alertsDesc, linesDesc, writesDesc, spansDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p page) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	for _, e := range *p.endpoints.Load() {
		e.mu.Lock()
		c := e.counts
		last := e.ring.between(now.Add(-amplified), now.Add(time.Second))
		e.mu.Unlock()
		s := series{ch: ch, endpoint: e.name}
		s.calls(&c)
		s.waits(&c)
		s.health(&c, now)
		s.amplification(last)
	}
	s := series{ch: ch}
	if p.sink != nil {
		dropped, failed := p.sink.counts()
		s.total(linesDesc, dropped)
		s.total(writesDesc, failed)
	}
	if p.tracer != nil {
		s.total(spansDesc, p.tracer.dropped.Load())
	}
}

// series writes the samples of one endpoint. A counter that never counted is
// left out, except for those that rates are made of.
type series struct {
	ch       chan<- prometheus.Metric
	endpoint string
}

func (s series) total(d *prometheus.Desc, n uint64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

// some writes a counter of the endpoint once it counted something.
func (s series) some(d *prometheus.Desc, n uint64, labels ...string) {
	if n > 0 {
		s.total(d, n, append([]string{s.endpoint}, labels...)...)
	}
}

func (s series) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{s.endpoint}, labels...)...)
}

func (s series) calls(c *counts) {
	for i, class := range classes {
		for j, reason := range reasons {
			s.some(callsDesc, c.calls[i][j], class, string(reason))
		}
		for j, group := range groups {
			s.some(attemptsDesc, c.attempts[i][j], class, group)
		}
		s.some(retriesDesc, c.retries[i], class)
	}
	for j, reason := range reasons {
		s.some(giveupsDesc, c.giveups[j], string(reason))
	}
	s.total(wireDesc, c.wire, s.endpoint)
}

func (s series) waits(c *counts) {
	for i, source := range sources {
		if c.waits[i] == 0 {
			continue
		}
		name := string(source)
		if source == "" {
			name = "none"
		}
		s.some(waitsDesc, c.waits[i], name)
		s.ch <- prometheus.MustNewConstMetric(waitedDesc, prometheus.CounterValue, c.waited[i].Seconds(), s.endpoint, name)
	}
}

// state is that of the breaker. No event tells of the end of its open time,
// which comes without traffic too.
func (c *counts) state(now time.Time) string {
	if s := states[c.breaker]; s != open || now.Before(c.opens) {
		return s
	}
	return halfOpen
}

func (s series) health(c *counts, now time.Time) {
	for _, state := range states {
		v := 0.0
		if state == c.state(now) {
			v = 1
		}
		s.gauge(breakerDesc, v, state)
	}
	s.total(tripsDesc, c.trips, s.endpoint)
	for i, result := range results {
		s.some(renewalsDesc, c.renewals[i], result)
	}
	for i, alert := range alertNames {
		s.total(alertsDesc, c.alerts[i], s.endpoint, alert)
	}
	s.total(badHintsDesc, c.badHints, s.endpoint)
	if c.told {
		s.gauge(quotaDesc, float64(c.remaining))
	}
	below, upTo := uint64(0), make(map[float64]uint64, len(bounds))
	for i, b := range bounds {
		below += c.healthy.buckets[i]
		upTo[b.Seconds()] = below
	}
	s.ch <- prometheus.MustNewConstHistogram(healthyDesc, c.healthy.count, c.healthy.sum.Seconds(), upTo, s.endpoint)
}

// amplification compares what was sent with what it was good for. Without a
// call that ended there is nothing to compare with.
func (s series) amplification(last sums) {
	if last.sent == 0 {
		return
	}
	if last.calls > 0 {
		s.gauge(actualDesc, float64(last.sent)/float64(last.calls))
	}
	if last.served > 0 {
		s.gauge(effectiveDesc, float64(last.sent)/float64(last.served))
	} else {
		s.gauge(effectiveDesc, math.Inf(1))
	}
}

// fits tells whether a name can be the value of a label.
func fits(name string) bool {
	return len(name) <= maxID && utf8.ValidString(name)
}
