package sim

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim/rate"
)

// Exchange is one request on its way through a pack. An operation asks it for
// what it needs and gives back an Answer.
type Exchange struct {
	Request *http.Request
	// Body is the whole body of the request; Request.Body is used up.
	Body []byte
	// Path is the path within the pack: without /t/CASE and /PACK.
	Path string

	w          http.ResponseWriter
	own        *Case
	pack       *pack
	operation  *operation // nil: unknown
	values     values     // what the {…} of the operation matched
	credential string
	caller     *caller
	begun      time.Time // on the clock of the case
	step       *step     // nil: none
	refused    *Refusal  // the request itself was bad
	entry      record
	counted    bool          // by the limits of the pack, and let through
	running    []int         // of these the ones that count x while it runs
	holding    bool          // the idempotency key
	lost       bool          // no pack has its path
	undone     bool          // and that was not the same
	past       time.Duration // it is shown what was so long ago; 0: what is
	planning   bool          // After holds x
	ids        int           // given out
	era        int           // of the case, when x began
	form       url.Values
	least      rate.Told   // the quota in the plain form; no Limit: nothing is told
	quota      [][2]string // or in that of the dialect
}

// Value is what {name} of the operation's route matched.
func (x *Exchange) Value(name string) string {
	if x.operation == nil {
		return ""
	}
	return x.operation.pattern.value(name, &x.values)
}

// Operation is the logical name of the operation, "" if there is none.
func (x *Exchange) Operation() string {
	if x.operation == nil {
		return ""
	}
	return x.operation.Name
}

// Query is the first value of a query parameter.
func (x *Exchange) Query(name string) string {
	if x.Request.URL.RawQuery == "" {
		return ""
	}
	return x.Request.URL.Query().Get(name)
}

// Form is a body in application/x-www-form-urlencoded, with the query's
// parameters where the body lacks them.
func (x *Exchange) Form() url.Values {
	if x.form == nil {
		x.form, _ = url.ParseQuery(string(x.Body)) // what can be read of it counts
		for name, v := range x.Request.URL.Query() {
			if _, ok := x.form[name]; !ok {
				x.form[name] = v
			}
		}
	}
	return x.form
}

// Decode reads a JSON body into v.
func (x *Exchange) Decode(v any) error { return json.Unmarshal(x.Body, v) }

// Credential is the secret by which the pack knows the caller. Do not tell it.
func (x *Exchange) Credential() string { return x.credential }

// Attempt counts the requests of this caller at this method and path, from 1.
func (x *Exchange) Attempt() int { return int(x.entry.attempt) }

// Seed is that of the world.
func (x *Exchange) Seed() uint64 { return x.own.realm.world.Seed }

// World is the world as it was asked for.
func (x *Exchange) World() World { return x.own.realm.world }

// Now is the time on the clock of the case.
func (x *Exchange) Now() time.Time { return x.own.clock.now() }

// Draw returns a number in [0, 1) that depends on the seed, the case, the
// caller, the operation, the attempt and the purpose, and on nothing else.
func (x *Exchange) Draw(purpose string) float64 {
	return x.chance(purpose).number(x.Attempt()).part()
}

func (x *Exchange) chance(purpose string) sum {
	return (sumBegin ^ sum(x.own.realm.world.Seed)).text(purpose).text(x.own.id).
		text(x.caller.name).text(x.Request.Method).text(x.Path)
}

// ID returns prefix and 16 letters and digits: another one at every call, the
// same ones in the same world.
func (x *Exchange) ID(prefix string) string {
	x.ids++
	h := x.chance("id").number(x.Attempt()).number(x.ids)
	var raw [10]byte
	binary.BigEndian.PutUint64(raw[:], uint64(h))
	binary.BigEndian.PutUint16(raw[8:], uint16(h.number(1)))
	return prefix + strings.ToLower(base32.StdEncoding.EncodeToString(raw[:]))
}

// Effect enters into the ledger that something was done. Subject is what it
// was done to, so that doing it twice is told; "" if that means nothing.
func (x *Exchange) Effect(kind, subject string, amount int64) {
	x.own.ledger.add(kind, subject, amount)
}

// Left is what is left for the caller of x at the first limit of this name,
// for providers that tell it in the body. Only Do, CostOf and Tell may ask.
// Its second result is false where there is no such limit, or one that is not
// told.
func (x *Exchange) Left(name string) (rate.Told, bool) {
	for i := range x.pack.limits {
		if l := &x.pack.limits[i]; l.Name == name {
			return x.own.meter(x, i).Told(&l.Limit, x.Now())
		}
	}
	return rate.Told{}, false
}

// Spend takes more from the limits of this name that count x, once it is known
// what x really cost; less than 0 is given back. Header fields tell what is
// left afterwards. Where a step led x past the limits nothing is taken. Only Do
// may spend.
func (x *Exchange) Spend(name string, cost float64) {
	if !x.counted {
		return
	}
	now := x.Now()
	for i := range x.pack.limits {
		l := &x.pack.limits[i]
		if l.Name == name && l.applies(x.Request.Method, x.Path) {
			x.own.meter(x, i).Spend(&l.Limit, now, cost)
		}
	}
	x.tell(now)
}

// Refuse writes a refusal in the dialect of the pack.
func (x *Exchange) Refuse(r Refusal) Answer {
	if r.Detail == "" {
		r.Detail = strings.ToLower(http.StatusText(r.StatusOr(r.Kind.DefaultStatus())))
	}
	if f := x.pack.Dialect.Refuse; f != nil {
		return f(x, r)
	}
	return Plain(x, r)
}

// read takes the body in.
func (x *Exchange) read() {
	if x.Request.Body == nil || x.Request.Body == http.NoBody || x.Request.ContentLength == 0 {
		return // an in-memory transport may leave it out
	}
	var err error
	x.Body, err = io.ReadAll(http.MaxBytesReader(x.w, x.Request.Body, int64(x.pack.MaxBody)))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		x.refused = &Refusal{Kind: TooLarge, Detail: "the body is longer than " + strconv.Itoa(x.pack.MaxBody) + " bytes"}
	} else if err != nil {
		x.refused = &Refusal{Kind: BadRequest, Detail: "the body could not be read; send all of it"}
	}
}

// begin finds the caller and claims the step. Claim, count and journal are one
// atomic act, so that parallel requests share out the steps exactly.
func (x *Exchange) begin() {
	c := x.own
	var key, body fingerprint
	if len(x.Body) > 0 {
		body = fingerprintOf(x.Body)
	}
	if k := x.Request.Header.Get(x.pack.keys.Header); k != "" {
		key = fingerprintOf(k)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x.begun, x.era = c.clock.now(), c.era
	x.caller = c.callerOf(x.pack, x.credential)
	at := x.caller.hash.text(x.Request.Method).text(x.Path).number(0)
	before, ok := c.asked.get(at)
	if !ok { // copies, or each would keep a whole head of a request in memory
		before = visits{strings.Clone(x.Request.Method), strings.Clone(clip(x.Path)), 0}
	}
	before.n++
	c.asked.put(at, before)
	x.entry = record{
		time: x.begun.UnixNano(), pack: x.pack, operation: x.operation, caller: x.caller, connection: x.Request.RemoteAddr,
		method: before.method, path: before.path, attempt: before.n, bytesIn: int32(len(x.Body)), key: key, body: body,
	}
	if o := x.caller; x.begun.Before(o.until) && x.begun.Sub(o.toldAt) >= c.realm.world.Grace {
		x.entry.early = o.until.Sub(x.begun)
	}
	if x.refused == nil {
		x.claim()
	}
	c.journal.zone = x.begun.Location()
	c.journal.add(&x.entry)
}

// claim takes the next step of the first line that matches, or else what the
// pack plans for x.
func (x *Exchange) claim() {
	s := x.next()
	if s == nil && x.pack.Script != nil {
		s = x.planned()
	}
	if s != nil {
		x.step, x.entry.step = s, s
	}
}

func (x *Exchange) next() *step {
	c := x.own
	if len(c.steps.rules) == 0 {
		return nil
	}
	i, apart, ok := c.steps.find(x)
	if !ok {
		return nil
	}
	at := x.caller.hash.text(apart).number(i)
	n, _ := c.claimed.get(at)
	s, ok := c.steps.rules[i].at(n)
	if !ok {
		return nil
	}
	c.claimed.put(at, n+1)
	return s
}

// planned is the step that the script of the pack has for x. A text that is no
// step is an error of the pack, and is told to whoever asks.
func (x *Exchange) planned() *step {
	text := x.pack.Script(x)
	if text == "" {
		return nil
	}
	s, err := parseStep(text)
	if err != nil {
		x.refused = &Refusal{Kind: Failed, Detail: "the pack " + x.pack.Name + " plans no step: " + err.Error()}
		return nil
	}
	return &s
}

// usual is the behaviour without a step: authorization, the limits, chance,
// and then the operation.
func (x *Exchange) usual() {
	if x.operation == nil {
		x.refuse(x.pack.unknown(x))
		return
	}
	if !x.operation.Free {
		if r := x.authorize(); r != nil {
			x.refuse(*r)
			return
		}
		if r := x.admit(); r != nil {
			x.refuse(*r)
			return
		}
		if f := x.own.realm.world.FailureRate; f > 0 && x.Draw("failure") < f {
			x.refuse(Refusal{Kind: Overloaded, Detail: "a failure by chance"})
			return
		}
	}
	an := x.operate()
	if an.Pace == (Pace{}) { // or who asks again at once would meet itself
		x.release()
	}
	x.write(an)
}

func (x *Exchange) authorize() *Refusal {
	if x.pack.Authorize == nil {
		return nil
	}
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	return x.pack.Authorize(x)
}

// operate does what was asked for, once per idempotency key.
func (x *Exchange) operate() Answer {
	if x.operation == nil {
		return x.Refuse(x.pack.unknown(x))
	}
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	x.own.turn++
	if x.past > 0 {
		x.own.past, x.own.undone = x.past, false
		defer func() { x.own.past, x.undone = 0, x.own.undone }()
	}
	if key := x.key(); key != "" {
		return x.operateKeyed(key)
	}
	return x.operation.Do(x)
}

// close notes that the caller was told to stay away for d.
func (x *Exchange) close(d time.Duration) {
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	x.caller.close(x.own.clock.now(), d)
}

func (c *caller) close(now time.Time, d time.Duration) {
	if until := now.Add(d); until.After(c.until) {
		c.toldAt, c.until = now, until
	}
}

func (x *Exchange) refuse(r Refusal) { x.write(x.Refuse(r)) }

func (x *Exchange) write(an Answer) {
	x.outcome(an.Status)
	x.entry.bytesOut = int32(len(an.Body))
	an.write(x)
}

// outcome notes the status that the caller sees; 0 is no answer.
func (x *Exchange) outcome(status int) { x.entry.status = int16(status) }

func (x *Exchange) flush() error { return http.NewResponseController(x.w).Flush() }

// rest waits on the clock of the case and tells whether the caller is still
// there. Where the case was forgotten meanwhile nobody can answer any more.
func (x *Exchange) rest(d time.Duration) bool {
	ctx := x.Request.Context()
	if x.own.clock.rest(ctx, d) {
		return true
	}
	if ctx.Err() == nil {
		panic(http.ErrAbortHandler)
	}
	return false
}

// end settles the entry, also when a fault aborts the handler.
func (x *Exchange) end() {
	c := x.own
	c.mu.Lock()
	defer c.mu.Unlock()
	x.entry.took = c.clock.now().Sub(x.begun)
	if x.planning {
		defer x.slim()
	}
	if c.era != x.era {
		return // the case was reset meanwhile
	}
	x.letGo()
	c.journal.settle(&x.entry)
}

// release gives back what x holds while it runs, once its answer is made.
func (x *Exchange) release() {
	if len(x.running) == 0 && !x.holding {
		return
	}
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	if x.own.era == x.era {
		x.letGo()
	}
}

// letGo does so with the case locked.
func (x *Exchange) letGo() {
	for _, i := range x.running {
		l := &x.pack.limits[i]
		x.own.meter(x, i).Release(&l.Limit, x.cost(l))
	}
	x.running = nil
	if x.holding {
		if k, ok := x.own.keys.get(x.keyPlace(x.key())); ok {
			k.held = false
		}
		x.holding = false
	}
}
