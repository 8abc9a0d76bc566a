package call

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"unicode/utf8"

	"github.com/heedproject/heed/policy"
)

// RandomKey makes an idempotency key of 128 random bits.
func RandomKey(k *policy.Key, rng *rand.Rand) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], rng.Uint64())
	binary.LittleEndian.PutUint64(b[8:], rng.Uint64())
	return fit(k, hex.EncodeToString(b[:]))
}

// HashKey derives the idempotency key from what the write is: the same
// method, target, body and record id give the same key after a restart.
// With AnyOrder a JSON body enters in canonical form. Every part is preceded
// by its length, so that no two different writes read the same.
func HashKey(k *policy.Key, method, target, record string, body io.Reader) (string, error) {
	h := sha256.New()
	part := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		io.WriteString(h, s)
	}
	part(method)
	part(target)
	part(record)
	if body != nil {
		if k.AnyOrder {
			canonical, err := canonicalJSON(body)
			if err != nil {
				return "", err
			}
			body = canonical
		}
		if _, err := io.Copy(h, body); err != nil {
			return "", fmt.Errorf("read the body to derive an idempotency key: %w", err)
		}
	}
	return fit(k, hex.EncodeToString(h.Sum(nil)[:20])), nil
}

// canonicalJSON returns body with the members of every object in one order,
// or as it is when it is not one JSON value.
func canonicalJSON(body io.Reader) (io.Reader, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("read the body to derive an idempotency key: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // 1 and 1.0 stay what the caller wrote
	var doc any
	if dec.Decode(&doc) != nil {
		return bytes.NewReader(raw), nil
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bytes.NewReader(raw), nil
	}
	ordered, err := json.Marshal(doc) // maps are written in order of their keys
	// Decoding puts U+FFFD for every text that is none, and so would make
	// different bodies read the same.
	if err != nil || bytes.ContainsRune(ordered, utf8.RuneError) {
		return bytes.NewReader(raw), nil
	}
	return bytes.NewReader(ordered), nil
}

// fit shortens a made key to what the provider takes.
func fit(k *policy.Key, key string) string {
	if k.MaxLen > 0 && len(key) > k.MaxLen {
		return key[:k.MaxLen]
	}
	return key
}

// CheckKey refuses a caller's key that the provider would refuse or cut, or
// that could not be sent as a header.
func CheckKey(k *policy.Key, key string) error {
	if k.MaxLen > 0 && len(key) > k.MaxLen {
		return fmt.Errorf("idempotency key has %d bytes, the provider takes %d: shorten it", len(key), k.MaxLen)
	}
	for _, c := range []byte(key) {
		if c < 0x20 || c > 0x7e {
			return fmt.Errorf("idempotency key has a byte outside printable ASCII: use letters, digits and dashes")
		}
	}
	return nil
}

// Quote writes key as the policy says it is sent.
func Quote(k *policy.Key, key string) string {
	if !k.Quoted || quoted(key) {
		return key
	}
	q := make([]byte, 0, len(key)+2)
	q = append(q, '"')
	for _, c := range []byte(key) {
		if c == '"' || c == '\\' {
			q = append(q, '\\')
		}
		q = append(q, c)
	}
	return string(append(q, '"'))
}

// quoted tells that key is a structured-field string already: a quote that is
// not escaped stands at either end and nowhere else.
func quoted(key string) bool {
	if len(key) < 2 || key[0] != '"' {
		return false
	}
	for i := 1; i < len(key); i++ {
		switch key[i] {
		case '\\':
			i++
		case '"':
			return i == len(key)-1
		}
	}
	return false
}
