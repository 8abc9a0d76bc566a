package sim

import "time"

// maxKeys bounds the memory that idempotency keys take in one case.
const maxKeys = 1 << 14

// keyed is what is remembered of one idempotency key.
type keyed struct {
	request fingerprint // of the route and the body
	answer  Answer      // valid where kept
	kept    time.Time   // when; zero: not yet
	held    bool        // a request with it is not answered yet
}

// key returns the idempotency key of x, "" if there is none to honour.
func (x *Exchange) key() string {
	if x.operation == nil || !x.operation.Keyed {
		return ""
	}
	return x.Request.Header.Get(x.pack.keys.Header)
}

func (x *Exchange) keyPlace(key string) sum {
	return sumBegin.text(x.pack.Name).text(x.credential).text(key).number(0)
}

func (x *Exchange) fingerprint() fingerprint {
	return fingerprintOf(x.Request.Method + " " + x.Path + "\x00" + string(x.Body))
}

// hold claims the idempotency key for as long as x takes, so that a second
// request meets it in flight. It is called before a fault that waits.
func (x *Exchange) hold() *Refusal {
	key := x.key()
	if key == "" {
		return nil
	}
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	at := x.keyPlace(key)
	k, ok := x.own.keys.get(at)
	switch {
	case ok && k.held && !x.holding:
		return &Refusal{Kind: KeyInFlight, Detail: "a request with this idempotency key is still in progress"}
	case !ok:
		k = &keyed{request: x.fingerprint()}
		x.own.keys.put(at, k)
	}
	k.held, x.holding = true, true
	return nil
}

// operateKeyed does the work once per key. It runs with the case locked.
func (x *Exchange) operateKeyed(key string) Answer {
	rules := &x.pack.keys
	if len(key) > rules.MaxLength {
		return x.Refuse(Refusal{Kind: KeyTooLong, Detail: "the idempotency key is too long"})
	}
	at := x.keyPlace(key)
	k, ok := x.own.keys.get(at)
	now := x.own.clock.now()
	if ok && !k.kept.IsZero() && now.Sub(k.kept) >= rules.Window {
		*k = keyed{request: x.fingerprint(), held: k.held}
	}
	if !ok {
		k = &keyed{request: x.fingerprint()}
	}
	switch {
	case k.held && !x.holding:
		return x.Refuse(Refusal{Kind: KeyInFlight, Detail: "a request with this idempotency key is still in progress"})
	case k.request != x.fingerprint():
		return x.Refuse(Refusal{Kind: KeyMismatch, Detail: "this idempotency key was used with another body"})
	case !k.kept.IsZero():
		x.own.ledger.replayed++
		x.entry.replayed = true
		return k.answer.With(rules.Replayed[0], rules.Replayed[1])
	}
	an := x.operation.Do(x)
	if rules.Saves(an.Status) {
		x.keep(at, k, an)
	}
	return an
}

// keep remembers an answer for its key.
func (x *Exchange) keep(at sum, k *keyed, an Answer) {
	k.answer, k.kept = an, x.own.clock.now()
	x.own.keys.put(at, k)
	x.own.ledger.keys++
}

// save remembers what a step answered, as providers do that keep their
// failures; the work is not done.
func (x *Exchange) save(an Answer) {
	key := x.key()
	if key == "" || !x.pack.keys.Saves(an.Status) {
		return
	}
	x.own.mu.Lock()
	defer x.own.mu.Unlock()
	at := x.keyPlace(key)
	k, ok := x.own.keys.get(at)
	if !ok {
		k = &keyed{request: x.fingerprint()}
	}
	if k.kept.IsZero() {
		x.keep(at, k, an)
	}
}
