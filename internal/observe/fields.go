package observe

// Field describes one key of a log line.
type Field struct {
	Key  string
	Type string // string, number or bool
	Unit string // of a number: s (seconds) or bytes; empty: a count
	// Kinds are the kinds of line that have it; empty: every kind.
	Kinds []string
	// Always tells that lines of these kinds have it even when it is empty.
	Always bool
	Doc    string
}

var (
	steps   = []string{"attempt", "call"}
	answers = []string{"attempt", "call", "breaker", "token"}
	attempt = []string{"attempt"}
	calls   = []string{"attempt", "call", "wait", "breaker", "token", "hint_invalid"}
	waits   = []string{"attempt", "call", "wait"}
)

// Fields is the schema of the log, in the order of the keys in a line. A
// reader of logs can rely on it.
var Fields = []Field{
	{Key: "time", Type: "string", Always: true, Doc: "when the step ended, RFC 3339, UTC"},
	{Key: "level", Type: "string", Always: true, Doc: "DEBUG, INFO, WARN or ERROR; error: a person must act"},
	{Key: "msg", Type: "string", Always: true, Doc: "a constant sentence per kind"},
	{Key: "kind", Type: "string", Always: true, Doc: "attempt, call, wait, breaker, token, hint_invalid or alert"},
	{Key: "alert", Type: "string", Kinds: []string{"alert"}, Always: true, Doc: "outage_without_trip, retries_rising or timeout_short"},
	{Key: "endpoint", Type: "string", Always: true, Doc: "configured name of the upstream"},
	{Key: "method", Type: "string", Kinds: calls, Doc: "HTTP method"},
	{Key: "path", Type: "string", Kinds: calls, Doc: "path template; identifiers are {id}"},
	{Key: "attempt", Type: "number", Kinds: calls, Doc: "number of the attempt from 1; on a call line how many were made"},
	{Key: "status_code", Type: "number", Kinds: answers, Always: true, Doc: "HTTP status; 0: no answer"},
	{Key: "class", Type: "string", Kinds: steps, Always: true, Doc: "what the answer meant"},
	{Key: "executed", Type: "string", Kinds: steps, Always: true, Doc: "whether the server did what was asked: no, maybe or yes"},
	{Key: "rule", Type: "string", Kinds: []string{"attempt", "call", "token"}, Doc: "what decided the class; of a token line, why the issuer gave none"},
	{Key: "retry", Type: "bool", Kinds: attempt, Always: true, Doc: "another attempt follows"},
	{Key: "delay", Type: "number", Unit: "s", Kinds: []string{"attempt", "wait", "breaker"}, Always: true, Doc: "how long until the next attempt may start"},
	{Key: "waited", Type: "number", Unit: "s", Kinds: waits, Always: true, Doc: "how long was waited before the attempt, or in the whole call"},
	{Key: "wait_source", Type: "string", Kinds: []string{"attempt", "call", "wait", "breaker"}, Doc: "why, of delay if there is one, of the longest wait on a call line: retry_after, quota, backoff, pace, concurrency, breaker or token"},
	{Key: "retry_after", Type: "number", Unit: "s", Kinds: calls, Doc: "what the server asked for; missing: it did not ask"},
	{Key: "rate_limit_remaining", Type: "number", Kinds: calls, Doc: "quota left as told; missing: not told"},
	{Key: "correlation_id", Type: "string", Kinds: calls, Doc: "the caller's own id, up to 128 bytes"},
	{Key: "call_id", Type: "string", Kinds: calls, Doc: "joins the lines of one call"},
	{Key: "tenant", Type: "string", Kinds: calls, Doc: "on whose behalf, up to 64 bytes"},
	{Key: "elapsed", Type: "number", Unit: "s", Kinds: steps, Always: true, Doc: "how long the attempt, or the whole call, took"},
	{Key: "wire_attempts", Type: "number", Kinds: steps, Always: true, Doc: "requests really sent, resends of the HTTP stack included"},
	{Key: "breaker", Type: "string", Kinds: calls, Doc: "closed, open or half_open"},
	{Key: "reason", Type: "string", Kinds: calls, Doc: "why it ended without success, or waits"},
	{Key: "bytes", Type: "number", Unit: "bytes", Kinds: []string{"call"}, Always: true, Doc: "of the body that was delivered"},
	{Key: "advice", Type: "string", Kinds: []string{"breaker", "token", "alert"}, Doc: "what a person should do"},
}
