package main

// once is how the best settings of a library that does not look at methods
// keep writes without a key from being repeated.
const once = "a POST or PATCH without a key goes through a client without retries, as the library does not look at methods"

// clients are all that is on the scoreboard.
var clients = []client{
	{Key: "curl", Name: "curl", Run: curl, Set: map[string]string{
		best:    "`--fail --retry 5 --retry-max-time 60 --max-time 3`",
		untuned: "no options: no retries, and exit status 0 whatever the status is"},
		Note: "A command template, so that the same options serve every method. `--retry` is for timeouts and for 408, 429, 500, 502, 503 and 504; lost connections are repeated by `--retry-all-errors` only, which repeats 404 as well and of which the manual says not to use it by default."},
	adapted(client{Key: "curl-script", Name: "curl in a Bash script", Adapter: "examples/check/bash/curl.sh", Set: map[string]string{
		best:    "the same options, but no `--retry` for a POST or PATCH without a key, and `timeout` for the deadline",
		untuned: "no options; the script looks at the status"},
		Note: "What a careful script adds to curl: it chooses by method, looks at the status and has a deadline."}, "bash"),
	{Key: "wget", Name: "wget", Run: wget, Set: map[string]string{
		best:    "`--tries=6 --waitretry=2 --timeout=3 --retry-on-http-error=408,425,429,500,502,503,504`",
		untuned: "no options: 20 tries after lost connections, none after a status"},
		Note: "A command template. The manual promises nothing about Retry-After. By default it repeats lost connections only, so there it is not held to repeating what failed for a moment."},
	adapted(client{Key: "requests", Name: "requests + urllib3 Retry", Adapter: "examples/check/python/requests_urllib3.py", Set: map[string]string{
		best:    "`Retry(total=5, backoff_factor=0.3, status_forcelist=[408, 425, 429, 500, 502, 503, 504])`, `timeout=3`",
		untuned: "no retries, no timeout"},
		Note: "The versions of Debian 12. Newer ones of urllib3 can add jitter, and newer ones of requests notice a body that is cut short."}, "python3"),
	adapted(client{Key: "tenacity", Name: "tenacity around requests", Adapter: "examples/check/python/tenacity_requests.py", Set: map[string]string{
		best:    "`wait_random_exponential(0.3, max=2)`, but at least Retry-After; 8 attempts or until the deadline; `timeout=3`",
		untuned: "`Retrying()`: for ever, without a pause, whatever the error"},
		Note: "tenacity repeats a function and knows nothing of HTTP. What is repeated, and how Retry-After is read, is the adapter's, as the library leaves it to its users. `stop_after_delay` looks between attempts only and says so: it is not held to a deadline. That a body is cut short is for requests to notice."}, "python3"),
	adapted(client{Key: "httpx", Name: "httpx", Adapter: "examples/check/python/httpx_client.py", Set: map[string]string{
		best:    "`HTTPTransport(retries=5)`, `Timeout(3)`, `Limits(max_connections=8)`",
		untuned: "no retries, `Timeout(5)`"},
		Note: "It repeats connecting only and says so: it is not held to repeating anything else."}, "python3"),
	adapted(client{Key: "got", Name: "got", Adapter: "examples/check/node/got.mjs", Set: map[string]string{
		best:    "`retry: {limit: 5, backoffLimit: 2000, maxRetryAfter: 60000, statusCodes: [408, 425, 429, 500, 502, 503, 504]}`, `timeout: {request: 3000}`",
		untuned: "2 retries, Retry-After honoured, no timeout"},
		Note: "Without `maxRetryAfter` the timeout of a request bounds Retry-After as well, and anything longer ends the call."}, "node"),
	adapted(client{Key: "axios-retry", Name: "axios + axios-retry", Adapter: "examples/check/node/axios_retry.mjs", Set: map[string]string{
		best:    "`retries: 5, retryDelay: exponentialDelay, shouldResetTimeout: true`, `isIdempotentRequestError` and 408 and 425, `timeout: 3000`",
		untuned: "3 retries without a pause, Retry-After honoured, lost connections repeated for every method"}}, "node"),
	adapted(client{Key: "undici", Name: "undici RetryAgent", Adapter: "examples/check/node/undici_retry.mjs", Set: map[string]string{
		best:    "`maxRetries: 5, minTimeout: 300, maxTimeout: 60000`, 408 and 425 and both timeouts repeated; `headersTimeout` and `bodyTimeout` 3 s, `connections: 8`",
		untuned: "5 retries, 0.5 s doubling to 30 s, Retry-After honoured"},
		Note: "`maxTimeout` cuts Retry-After down as well, so it cannot be a cap for the backoff alone. Of a body that was cut short it asks for the rest (Range), and ends with an error where a server sends the whole again: it is not fooled, but does not get through."}, "node"),
	built(client{Key: "net-http", Name: "Go net/http", Adapter: "examples/check/go/nethttp/main.go", Set: map[string]string{
		best:    "`Timeout: 10s`, `MaxConnsPerHost: 8`",
		untuned: "`http.DefaultClient`"},
		Note: "It has no retries but for a reused connection that turns out to be closed, and claims none."}),
	built(client{Key: "retryablehttp", Name: "go-retryablehttp", Adapter: "examples/check/go/retryablehttp/main.go", Set: map[string]string{
		best:    "5 retries, `RateLimitLinearJitterBackoff` of 100 ms to 1 s, 408 and 425 by `CheckRetry`, timeout 3 s, no logger; " + once,
		untuned: "`NewClient()`: 4 retries, 1 s doubling to 30 s, Retry-After honoured, a log on stderr"}}),
	built(client{Key: "failsafe", Name: "failsafe-go", Adapter: "examples/check/go/failsafe/main.go", Set: map[string]string{
		best:    "retry policy (5 retries, a random delay of 100 ms to 2 s, 408 and 425 added) with a budget, circuit breaker, bulkhead of 8, timeout 3 s; " + once,
		untuned: "`failsafehttp.NewRetryPolicyBuilder()`: 2 retries without a pause, Retry-After in seconds honoured"},
		Note: "`WithJitter` is taken off Retry-After as well, so that the client comes back early; the pauses are spread by `WithRandomDelay` instead. The timeout ends with the header of the answer."}),
	built(client{Key: "resty", Name: "go-resty", Adapter: "examples/check/go/resty/main.go", Set: map[string]string{
		best:    "5 retries, 300 ms to 30 s, `AddRetryCondition` and `SetRetryAfter` as its README shows them, timeout 3 s",
		untuned: "no retries"},
		Note: "Retry-After is read by a callback of the adapter, as the library leaves it to its users; `SetRetryMaxWaitTime` cuts it down, so it cannot be a cap for the backoff alone."}),
	built(client{Key: "cenkalti", Name: "cenkalti/backoff", Adapter: "examples/check/go/cenkalti/main.go", Set: map[string]string{
		best:    "300 ms doubling to 2 s ±50 %, a minute, `RetryAfterError`, timeout 3 s, only what may be repeated",
		untuned: "the example of its documentation: 500 ms × 1.5 to a minute ±50 %, 15 minutes, every method"},
		Note: "It repeats a function. What is repeated, and how Retry-After is read, is the adapter's, as the library leaves it to its users; with the default settings that is the example of the package, which reads seconds."}),
	built(client{Key: "aws", Name: "AWS SDK for Go, retryer", Adapter: "examples/check/go/aws/main.go", Set: map[string]string{
		best:    "`MaxAttempts: 6`, `MaxBackoff: 2s`, 408 and 425 among `Retryables`, timeout 3 s; a POST or PATCH without a key has `NopRetryer`",
		untuned: "`retry.NewStandard()`: 3 attempts, full jitter to 20 s, a bucket of 500 tokens"},
		Note: "The retry middleware of the SDK in an operation that the adapter builds. It is made for the services of AWS, whose header is X-Amz-Retry-After; it does not promise to read Retry-After."}),
	built(client{Key: "heed", Name: "heed, library", Adapter: "examples/check/heed/main.go", Set: map[string]string{
		best:    "`agreed` in the adapter: backoff 300 ms to 2 s, attempts of 3 s, 8 at a time, whole answers verified, keys made by heed",
		untuned: "`heed.Transport{}`"}}),
	{Key: "heed-gateway", Name: "heed, gateway", Run: gateway, Set: map[string]string{
		best:    "the same as the library's, in heed.yaml",
		untuned: "an endpoint with nothing but its url"},
		Note: "Behind it is a client that sends everything once, and adds Heed-Budget and Heed-Tenant where it was told a deadline or a tenant. Tokens are n/a, as the address of the token endpoint is another one in every case."},
}
