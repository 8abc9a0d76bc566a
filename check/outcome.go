package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// errStray is a text that is no outcome and means to be none, such as a log line.
var errStray = errors.New("it is no JSON object with id and ok")

// reply is an Outcome as a client writes it: what it leaves out can be told from
// what it says.
type reply struct {
	ID     *string `json:"id"`
	OK     *bool   `json:"ok"`
	Status *int    `json:"status"`
	Error  *string `json:"error"`
	URL    *string `json:"url"`
}

// kinds are what the fields of a JSON object of the protocol hold.
var kinds = map[string]string{"id": "a string", "ok": "true or false", "status": "a whole number", "error": "a string", "url": "a string",
	"name": "a string", "version": "a string", "claims": "a list of strings", "serial": "true or false"}

// parsed reads one JSON object of the protocol. Its error says what is wrong.
func parsed(text []byte, into any) error {
	err := json.Unmarshal(text, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && kinds[wrong.Field] != "" {
		return fmt.Errorf("%s must be %s, got %s", wrong.Field, kinds[wrong.Field], wrong.Value)
	}
	if err != nil {
		return errStray
	}
	return nil
}

// replied reads what a client writes of an operation.
func replied(text []byte) (r reply, err error) {
	switch err = parsed(text, &r); {
	case err != nil:
		return r, err
	case r.ID == nil && r.OK == nil:
		return r, errStray
	case r.OK == nil:
		return r, errors.New("ok is missing; it must be true or false")
	}
	return r, nil
}

// outcome is what the reply says.
func (r reply) outcome() Outcome {
	return Outcome{ID: filled(r.ID), OK: filled(r.OK), Status: filled(r.Status), Error: filled(r.Error), URL: filled(r.URL)}
}

// filled is what p points at, and the zero value if that is nothing.
func filled[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// manners are how the client keeps to the protocol, over all cases.
type manners struct {
	mu     sync.Mutex
	played int
	faulty int
	fault  string // the first
	stray  int
	first  string // of them
}

// see takes in what one case shows.
func (m *manners) see(e *Evidence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.played++
	if e.Output.Fault != "" {
		if m.faulty++; m.fault == "" {
			m.fault = e.Case.ID + ", " + plainly(hide(e.Output.Fault, e.secrets), mostCause)
		}
	}
	if e.Output.Stray > 0 {
		if m.stray == 0 {
			m.first = e.Case.ID + ", " + plainly(hide(e.Output.FirstStray, e.secrets), 200)
		}
		m.stray += e.Output.Stray
	}
}

// err is an error where the client was not understood in any case.
func (m *manners) err() error {
	if m.faulty == 0 || m.faulty < m.played {
		return nil
	}
	return fmt.Errorf("check: the client does not keep to the protocol: %s", m.fault)
}

// notes are what the report says of it.
func (m *manners) notes() []string {
	if m.stray == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the client wrote %s of what is no outcome to its output, where only outcomes belong; the first: %s",
		count(m.stray, "line"), m.first)}
}
