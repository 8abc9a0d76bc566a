package queue

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
)

// A record is a JSON head, preceded by its length, and the body as it is: a
// body in base64 would take a third more of the disk.

type requestHead struct {
	Path     string      `json:"p"`
	Header   http.Header `json:"h,omitempty"`
	Key      string      `json:"k,omitempty"`
	Callback string      `json:"c,omitempty"`
}

type answerHead struct {
	Status int         `json:"s"`
	Header http.Header `json:"h,omitempty"`
}

// record makes a record that can be sealed in place.
func record(head any, body []byte) ([]byte, error) {
	h, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write the record of a call: %w", err)
	}
	b := make([]byte, sealHead, sealHead+binary.MaxVarintLen32+len(h)+len(body)+sealTail)
	b = binary.AppendUvarint(b, uint64(len(h)))
	b = append(b, h...)
	return append(b, body...), nil
}

func readRecord(b []byte, head any) (body []byte, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, fmt.Errorf("read the record of a call: it is cut short: %w", ErrCorrupt)
	}
	if err := json.Unmarshal(b[w:w+int(n)], head); err != nil {
		return nil, fmt.Errorf("read the record of a call: %w", ErrCorrupt)
	}
	if body = b[w+int(n):]; len(body) == 0 {
		return nil, nil
	}
	return body, nil
}

// SealRequest seals what a call says, bound to its id and endpoint.
func (k *Keys) SealRequest(f *Facts, r *Request) ([]byte, error) {
	b, err := record(requestHead{r.Path, r.Header, r.Key, r.Callback}, r.Body)
	if err != nil {
		return nil, err
	}
	return k.seal(Bound{f.ID, f.Endpoint, "request"}, b), nil
}

// OpenRequest is the way back.
func (k *Keys) OpenRequest(f *Facts, sealed []byte) (Request, error) {
	var h requestHead
	b, err := k.Open(Bound{f.ID, f.Endpoint, "request"}, sealed)
	if err != nil {
		return Request{}, err
	}
	body, err := readRecord(b, &h)
	if err != nil {
		return Request{}, err
	}
	return Request{Path: h.Path, Header: h.Header, Body: body, Key: h.Key, Callback: h.Callback}, nil
}

// Same tells whether a call says what is sealed of the call with the same ID,
// of which f are the facts: to the same endpoint, with the same method, path
// and body. A record that cannot be unsealed counts as the same: there is
// nothing to tell it apart by.
func (k *Keys) Same(f *Facts, sealed []byte, c *Call) bool {
	if f.Endpoint != c.Endpoint || f.Method != c.Method {
		return false
	}
	was, err := k.OpenRequest(f, sealed)
	return err != nil || was.Path == c.Path && bytes.Equal(was.Body, c.Body)
}

// SealAnswer seals what a call was answered, bound to its id and endpoint.
func (k *Keys) SealAnswer(f *Facts, r *Result) ([]byte, error) {
	b, err := record(answerHead{r.Status, r.Header}, r.Body)
	if err != nil {
		return nil, err
	}
	return k.seal(Bound{f.ID, f.Endpoint, "answer"}, b), nil
}

// OpenAnswer is the way back.
func (k *Keys) OpenAnswer(f *Facts, sealed []byte) (Result, error) {
	var h answerHead
	b, err := k.Open(Bound{f.ID, f.Endpoint, "answer"}, sealed)
	if err != nil {
		return Result{}, err
	}
	body, err := readRecord(b, &h)
	if err != nil {
		return Result{}, err
	}
	return Result{Status: h.Status, Header: h.Header, Body: body}, nil
}

// Again seals a record with the active key: of a request, or of an answer.
func (k *Keys) Again(f *Facts, answer bool, sealed []byte) ([]byte, error) {
	to := Bound{f.ID, f.Endpoint, "request"}
	if answer {
		to.Field = "answer"
	}
	plain, err := k.Open(to, sealed)
	if err != nil {
		return nil, err
	}
	return k.Seal(to, plain), nil
}
