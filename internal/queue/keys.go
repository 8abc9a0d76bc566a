package queue

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Key is one key of the ring. It prints as its id.
type Key struct {
	id     string
	block  cipher.Block // AES-256 under the secret
	first  [16]byte     // the subkey K1 of CMAC
	secret [32]byte
	macs   sync.Pool // of *mac
}

// mac is an HMAC under a key. It is used again: making one costs as much as a
// digest of a kilobyte.
type mac struct {
	hash.Hash
	text []byte
}

const keyPrefix = "heed-key-1"

// NewKey makes a random key.
func NewKey() *Key {
	var secret [32]byte
	rand.Read(secret[:])
	return makeKey(secret)
}

// makeKey names the key by a digest of its secret, so that one id never stands
// for two secrets.
func makeKey(secret [32]byte) *Key {
	digest := sha256.Sum256(append([]byte("heed key id\x00"), secret[:]...))
	k := &Key{id: hex.EncodeToString(digest[:idLen]), secret: secret}
	k.block, _ = aes.NewCipher(secret[:]) // 32 bytes are always a key
	k.block.Encrypt(k.first[:], k.first[:])
	msb := k.first[0] >> 7
	for i := range 15 {
		k.first[i] = k.first[i]<<1 | k.first[i+1]>>7
	}
	k.first[15] = k.first[15]<<1 ^ msb*0x87
	return k
}

// ID names the key; it may be told.
func (k *Key) ID() string { return k.id }

// String tells the id only.
func (k *Key) String() string { return "key " + k.id }

// GoString tells the id only.
func (k *Key) GoString() string { return k.String() }

// Format tells the id only, whatever the verb.
func (k *Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// LogValue tells the id only.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Reveal returns the line of a key file: the secret itself.
func (k *Key) Reveal() string {
	return keyPrefix + " " + k.id + " " + base64.StdEncoding.EncodeToString(k.secret[:])
}

// ParseKey reads what Reveal wrote.
func ParseKey(line string) (*Key, error) {
	f := strings.Fields(line)
	if len(f) != 3 || f[0] != keyPrefix {
		return nil, fmt.Errorf("not a key: want %q, an id and 32 bytes in base64; make one with heed keys new", keyPrefix)
	}
	raw, err := base64.StdEncoding.DecodeString(f[2])
	if err != nil || len(raw) != 32 {
		return nil, fmt.Errorf("key %.16q: its secret is not 32 bytes in base64: restore the line from a copy", f[1])
	}
	k := makeKey([32]byte(raw))
	if k.id != f[1] {
		return nil, fmt.Errorf("key %.16q: the secret beside it belongs to another id: restore the line from a copy", f[1])
	}
	return k, nil
}

// Keys is a key ring: new records are sealed with the first key, and old ones
// opened with whichever key they name.
//
// The cipher is XAES-256-GCM (c2sp.org/XAES-256-GCM): AES-256-GCM under a key
// derived for each record from half of a nonce of 24 random bytes. Plain GCM
// with random nonces may seal 2^32 records under one key (NIST SP 800-38D,
// 8.3), which a busy queue reaches in days.
type Keys struct {
	ring []*Key
}

// NewKeys makes a ring.
func NewKeys(active *Key, old ...*Key) *Keys {
	return &Keys{ring: append([]*Key{active}, old...)}
}

// ReadKeys reads a key file: one key a line, the active one first; empty lines
// and lines that begin with # are skipped.
func ReadKeys(r io.Reader) (*Keys, error) {
	var k Keys
	s := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, err := ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("key file, line %d: %w", n, err)
		}
		if k.find(key.id) != nil {
			return nil, fmt.Errorf("key file, line %d: key %s stands there twice: remove one line", n, key.id)
		}
		k.ring = append(k.ring, key)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read the key file: %w", err)
	}
	if len(k.ring) == 0 {
		return nil, fmt.Errorf("the key file holds no key: make one with heed keys new")
	}
	return &k, nil
}

// IDs lists the ids, the active one first.
func (k *Keys) IDs() []string {
	ids := make([]string, len(k.ring))
	for i, key := range k.ring {
		ids[i] = key.id
	}
	return ids
}

// Active is the id of the key that seals.
func (k *Keys) Active() string { return k.ring[0].id }

func (k *Keys) find(id string) *Key {
	for _, key := range k.ring {
		if key.id == id {
			return key
		}
	}
	return nil
}

// Bound is what a sealed record belongs to: opened for another call, endpoint
// or field it is refused.
type Bound struct{ ID, Endpoint, Field string }

func (b Bound) bytes() []byte {
	out := make([]byte, 0, 8+len(b.ID)+len(b.Endpoint)+len(b.Field))
	for _, s := range []string{b.ID, b.Endpoint, b.Field} {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	return out
}

const (
	sealVersion = 1
	idLen       = 8
	nonceLen    = 24
	sealHead    = 1 + idLen + nonceLen
	sealTail    = 16 // of GCM
)

// Seal seals plain. The record begins with a version, the id of the key and
// the nonce.
func (k *Keys) Seal(to Bound, plain []byte) []byte {
	b := make([]byte, sealHead, sealHead+len(plain)+sealTail)
	return k.seal(to, append(b, plain...))
}

// seal seals in place what lies behind the first sealHead bytes of b.
func (k *Keys) seal(to Bound, b []byte) []byte {
	key := k.ring[0]
	b[0] = sealVersion
	hex.Decode(b[1:1+idLen], []byte(key.id))
	nonce := b[1+idLen : sealHead]
	rand.Read(nonce)
	return key.derive(nonce).Seal(b[:sealHead], nonce[12:], b[sealHead:], to.bytes())
}

// Open opens a sealed record.
func (k *Keys) Open(to Bound, sealed []byte) ([]byte, error) {
	id, err := SealedBy(sealed)
	if err != nil {
		return nil, err
	}
	key := k.find(id)
	if key == nil {
		return nil, fmt.Errorf("%s of call %s: sealed with key %s, which is not in the ring: add it: %w",
			to.Field, to.ID, id, ErrKey)
	}
	nonce := sealed[1+idLen : sealHead]
	plain, err := key.derive(nonce).Open(nil, nonce[12:], sealed[sealHead:], to.bytes())
	if err != nil {
		return nil, fmt.Errorf("%s of call %s: the record was changed or belongs to another call: %w", to.Field, to.ID, ErrKey)
	}
	return plain, nil
}

// SealedBy returns the id of the key of a sealed record.
func SealedBy(sealed []byte) (string, error) {
	if len(sealed) < sealHead+sealTail || sealed[0] != sealVersion {
		return "", fmt.Errorf("a sealed record is cut short or of an unknown version: %w", ErrKey)
	}
	return hex.EncodeToString(sealed[1 : 1+idLen]), nil
}

// derive makes the cipher of one record from the first half of its nonce.
func (k *Key) derive(nonce []byte) cipher.AEAD {
	var sub [32]byte
	for i := range 2 {
		m := sub[16*i : 16*i+16]
		m[1], m[2] = byte(i+1), 'X'
		copy(m[4:], nonce[:12])
		for j, b := range k.first {
			m[j] ^= b
		}
		k.block.Encrypt(m, m)
	}
	block, _ := aes.NewCipher(sub[:])
	gcm, _ := cipher.NewGCM(block) // AES always fits
	return gcm
}

// Print is what a store keeps of an idempotency key and the request it came
// with: digests that tell nothing without the ring.
type Print struct {
	By   string // id of the key that made it
	Key  []byte // of endpoint and idempotency key
	Body []byte // of tenant, method, path and body
}

// Prints returns the digests of a call under every key of the ring, the active
// one first: a key that was taken under an older one is still taken. None if
// the call has no idempotency key. Tenants share the keys of an endpoint, as
// they share its credential, but none is told that the call of another one was
// its own.
func (k *Keys) Prints(c *Call) []Print {
	if c.Key == "" {
		return nil
	}
	out := make([]Print, len(k.ring))
	for i, key := range k.ring {
		out[i] = Print{By: key.id, Key: key.digest([]string{"key", c.Endpoint, c.Key}),
			Body: key.digest([]string{"body", c.Tenant, c.Method, c.Path}, c.Body)}
	}
	return out
}

// digest is an HMAC-SHA-256 of the words and of what follows them, each
// preceded by its length, cut to 128 bits.
func (k *Key) digest(words []string, rest ...[]byte) []byte {
	m, _ := k.macs.Get().(*mac)
	if m == nil {
		m = &mac{Hash: hmac.New(sha256.New, k.secret[:])}
	}
	defer k.macs.Put(m)
	m.Reset()
	b := append(m.text[:0], "heed digest\x00"...)
	for _, w := range words {
		b = binary.BigEndian.AppendUint64(b, uint64(len(w)))
		b = append(b, w...)
	}
	for _, r := range rest {
		b = binary.BigEndian.AppendUint64(b, uint64(len(r)))
		m.Write(b)
		m.Write(r)
		b = b[:0]
	}
	m.Write(b)
	m.text = b
	return m.Sum(make([]byte, 0, sha256.Size))[:16]
}

// Has tells whether the ring holds a key of this id.
func (k *Keys) Has(id string) bool { return k.find(id) != nil }
