package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// maxCharges bounds the memory that charges take.
const maxCharges = 50_000

// Effects is the ledger: what the requests have really done.
type Effects struct {
	Charges  int   `json:"charges"`  // that exist
	Amount   int64 `json:"amount"`   // of all charges
	Keys     int   `json:"keys"`     // idempotency keys seen
	Replayed int   `json:"replayed"` // requests answered from the memory of their key
}

type charge struct {
	ID       string `json:"id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Status   string `json:"status"`
}

// remembered is the answer of an idempotency key.
type remembered struct {
	body   string // hash of the request
	answer answer
}

type charges struct {
	list    []charge
	keys    map[string]remembered
	effects Effects
}

func newCharges() charges { return charges{keys: map[string]remembered{}} }

// postCharge makes a charge, once per idempotency key: the same key with the
// same body gets the first answer again, with another body 422, as
// draft-ietf-httpapi-idempotency-key-header says.
func (a *API) postCharge(x *exchange) answer {
	key := x.r.Header.Get("Idempotency-Key")
	if len(key) > 255 {
		return problem(http.StatusBadRequest, "an idempotency key has at most 255 characters")
	}
	mine := x.r.Header.Get("X-Api-Key") + "\x00" + x.r.Header.Get("Authorization") + "\x00" + key
	if first, ok := a.charges.keys[mine]; ok && key != "" {
		if first.body != hash(x.body) {
			return problem(http.StatusUnprocessableEntity, "this idempotency key was used with another body")
		}
		a.charges.effects.Replayed++
		an := first.answer
		an.header = append(an.header[:len(an.header):len(an.header)], [2]string{"Idempotent-Replayed", "true"})
		return an
	}
	an := a.charge(x.body)
	if key != "" && an.status == http.StatusCreated {
		a.charges.keys[mine] = remembered{hash(x.body), an}
		a.charges.effects.Keys++
	}
	return an
}

func (a *API) charge(body []byte) answer {
	var c charge
	if err := json.Unmarshal(body, &c); err != nil || c.Amount <= 0 || len(c.Currency) != 3 {
		return problem(http.StatusBadRequest, `send {"amount": 1200, "currency": "eur"}, the amount in cents`)
	}
	if len(a.charges.list) >= maxCharges {
		return problem(http.StatusInsufficientStorage, "the simulator holds no more charges; POST /_sim/reset empties it")
	}
	c.ID, c.Status = fmt.Sprintf("ch_%d", len(a.charges.list)+1), "succeeded"
	a.charges.list = append(a.charges.list, c)
	a.charges.effects.Charges++
	a.charges.effects.Amount += c.Amount
	an := object(http.StatusCreated, c)
	an.set("Location", "/v1/charges/"+c.ID)
	return an
}

func (a *API) getCharge(x *exchange) answer {
	var n int
	if len(x.value) > 3 && x.value[:3] == "ch_" {
		n, _ = strconv.Atoi(x.value[3:])
	}
	if n < 1 || n > len(a.charges.list) {
		return problem(http.StatusNotFound, "there is no such charge")
	}
	return object(200, a.charges.list[n-1])
}
