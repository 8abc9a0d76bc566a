package sim

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request on its way through the API.
type exchange struct {
	api   *API
	w     http.ResponseWriter
	r     *http.Request
	body  []byte
	begun time.Time

	caller    *caller
	operation *operation // nil: unknown
	value     string     // what the {…} of the operation matched
	step      step
	entry     Entry
	refused   *answer // the request itself was bad
}

// begin reads the request and claims its step. Claim, count and journal are
// one atomic act, so that parallel requests share out the steps exactly.
func (a *API) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{api: a, w: w, r: r}
	var err error
	if r.Body != nil { // an in-memory transport may leave it out
		x.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	}
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		an := problem(http.StatusRequestEntityTooLarge, "the body is longer than "+strconv.Itoa(maxBody)+" bytes")
		x.refused = &an
	} else if err != nil {
		an := problem(http.StatusBadRequest, "the body could not be read; send all of it")
		x.refused = &an
	}
	x.operation, x.value = findOperation(r)

	a.mu.Lock()
	defer a.mu.Unlock()
	x.begun = time.Now()
	c, credential := a.callerOf(r, x.begun)
	x.caller = c
	x.note()
	at := credential + "\x00" + r.Method + "\x00" + r.URL.Path
	n, _ := a.asked.get(at)
	a.asked.put(at, n+1)
	x.entry.Attempt = n + 1
	if x.refused == nil {
		x.claim(credential)
	}
	x.entry = a.journal.add(x.entry)
	return x
}

// note writes down what is known of the request before it is answered.
func (x *exchange) note() {
	x.entry = Entry{
		Time: x.begun, Caller: x.caller.name, Connection: x.r.RemoteAddr,
		Method: x.r.Method, Path: clip(x.r.URL.Path), BytesIn: len(x.body),
	}
	if x.operation != nil {
		x.entry.Operation = x.operation.name
	}
	if len(x.body) > 0 {
		x.entry.Body = hash(x.body)
	}
	if k := x.r.Header.Get("Idempotency-Key"); k != "" {
		x.entry.Key = hash(k)
	}
	if c := x.caller; x.begun.Before(c.until) && x.begun.Sub(c.toldAt) >= x.api.world.Grace {
		x.entry.Early = c.until.Sub(x.begun)
	}
}

// claim takes the next step of the first line that matches.
func (x *exchange) claim(credential string) {
	a := x.api
	i, apart, ok := a.steps.find(x.r.Method, x.r.URL.Path)
	if !ok {
		return
	}
	at := credential + "\x00" + strconv.Itoa(i) + "\x00" + apart
	n, _ := a.claimed.get(at)
	s, ok := a.steps.rules[i].at(n)
	if !ok {
		return
	}
	a.claimed.put(at, n+1)
	x.step, x.entry.Step = s, s.text
}

// usual is the behaviour without a step: the limit, then chance, then the
// operation.
func (x *exchange) usual() {
	if x.operation == nil {
		x.write(unknown(x.r))
		return
	}
	var quota answer
	if !x.operation.free {
		if !x.admit(&quota) {
			x.write(quota)
			return
		}
		if f := x.api.world.FailureRate; f > 0 && x.draw("failure") < f {
			x.write(problem(http.StatusServiceUnavailable, "a failure by chance"))
			return
		}
	}
	an := x.operate()
	an.header = append(an.header, quota.header...)
	x.write(an)
}

// admit asks the bucket. It writes the quota into an, and the whole answer
// when there is no token.
func (x *exchange) admit(an *answer) bool {
	w := x.api.world
	if w.Rate == 0 {
		return true
	}
	x.api.mu.Lock()
	defer x.api.mu.Unlock()
	now := time.Now()
	wait, ok := x.caller.bucket.take(w, now)
	if !ok {
		*an = problem(http.StatusTooManyRequests, "too many requests with this credential; wait as long as Retry-After says")
		an.set("Retry-After", wholeSeconds(max(wait, time.Second)))
		x.entry.Throttled = true
		x.caller.close(now, wait)
	}
	x.caller.bucket.tell(w, an)
	return ok
}

// operate does what was asked for.
func (x *exchange) operate() answer {
	if x.operation == nil {
		return unknown(x.r)
	}
	x.api.mu.Lock()
	defer x.api.mu.Unlock()
	return x.operation.answer(x.api, x)
}

// close notes that the caller was told to stay away for d.
func (x *exchange) close(d time.Duration) {
	x.api.mu.Lock()
	defer x.api.mu.Unlock()
	x.caller.close(time.Now(), d)
}

func (c *caller) close(now time.Time, d time.Duration) {
	if until := now.Add(d); until.After(c.until) {
		c.toldAt, c.until = now, until
	}
}

func (x *exchange) draw(purpose string) float64 {
	return x.api.world.draw(purpose, x.caller.name, x.r.Method+" "+x.r.URL.Path, x.entry.Attempt)
}

func (x *exchange) write(an answer) {
	x.outcome(an.status)
	x.entry.BytesOut = len(an.body)
	an.write(x.w)
}

// outcome notes the status that the caller sees; 0 is no answer.
func (x *exchange) outcome(status int) { x.entry.Status = status }

func (x *exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// end settles the entry, also when a fault aborts the handler.
func (x *exchange) end() {
	x.api.mu.Lock()
	defer x.api.mu.Unlock()
	x.entry.Took = time.Since(x.begun)
	x.api.journal.settle(x.entry)
}

// clip bounds what one request adds to the journal.
func clip(path string) string {
	const most = 256
	if len(path) > most {
		return path[:most] + "…"
	}
	return path
}
