// Package observe tells what happened to calls: it turns each heed.Event into
// a log line, numbers at /metrics and, when asked to, OpenTelemetry spans.
//
// New starts an Observer. Its Observe method is what a heed.Transport is given:
//
//	o, err := observe.New(observe.Options{Log: os.Stdout})
//	…
//	t := &heed.Transport{Observe: o.Observe}
//	defer o.Close(ctx)
//
// # Log lines
//
// A line is what log/slog would print: time (RFC 3339, UTC), level, msg, then
// the keys of Fields, always in that order. Empty values are left out, except
// for the numbers that an analysis counts on. Durations are decimal numbers in
// seconds. The kind of a line is attempt, call, wait, breaker, token,
// hint_invalid or, for what the observer noticed itself, alert.
//
// Level error means that a person must act: a breaker opened, or there is an
// outage and none did. Warn is an attempt or a call without the answer it was
// sent for. What callers choose freely (correlation id, tenant) is bounded in
// length, and control characters are escaped. Paths are told as templates;
// queries, headers and bodies are not in an Event and so in no line.
//
// # Life and limits
//
// Observe does not block. Lines go through a buffer of Options.Buffer bytes to
// one goroutine that writes them; where the writer cannot follow, lines are
// dropped, and a line of its own says how many. Spans are treated alike. Close
// ends the goroutines after they wrote what they hold.
//
// Label values are bounded: endpoints are the configured names (beyond
// MaxEndpoints they are counted as "other"), everything else is a closed set.
package observe
