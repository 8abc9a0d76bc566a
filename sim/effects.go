package sim

// Effects is the ledger: what the requests have really done. It counts what
// the store may have forgotten since.
type Effects struct {
	Charges  int   `json:"charges"`  // of the kind charge, that were made
	Amount   int64 `json:"amount"`   // of all charges
	Keys     int   `json:"keys"`     // idempotency keys whose answer was kept
	Replayed int   `json:"replayed"` // requests answered from the memory of their key
	// Kinds counts every kind that packs tell of, charge among them.
	Kinds map[string]Effect `json:"kinds,omitempty"`
}

// Effect is what was done of one kind.
type Effect struct {
	Count  int   `json:"count"`
	Amount int64 `json:"amount,omitempty"`
	// Repeated counts what was done twice or more to the same thing: effects
	// with a subject that had one already.
	Repeated int `json:"repeated,omitempty"`
}

// ledger adds up effects.
type ledger struct {
	kinds    map[string]Effect
	subjects shelf[sum, int] // effects by kind and subject
	keys     int
	replayed int
}

const maxSubjects = 1 << 16

func (l *ledger) add(kind, subject string, amount int64) {
	if l.kinds == nil {
		l.kinds = map[string]Effect{}
		l.subjects = newShelf[sum, int](maxSubjects)
	}
	e := l.kinds[kind]
	e.Count++
	e.Amount += amount
	if subject != "" {
		at := sumBegin.text(kind).text(subject).number(0)
		n, _ := l.subjects.get(at)
		l.subjects.put(at, n+1)
		if n > 0 {
			e.Repeated++
		}
	}
	l.kinds[kind] = e
}

func (l *ledger) read() Effects {
	e := Effects{Charges: l.kinds["charge"].Count, Amount: l.kinds["charge"].Amount, Keys: l.keys, Replayed: l.replayed}
	for kind, one := range l.kinds {
		if e.Kinds == nil {
			e.Kinds = map[string]Effect{}
		}
		e.Kinds[kind] = one
	}
	return e
}
