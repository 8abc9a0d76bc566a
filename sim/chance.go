package sim

import (
	"crypto/sha256"
	"encoding/hex"
)

// sum is a hash that grows part by part. It decides what happens by chance
// and finds counters; it is FNV-1a with an end mark after every part, so that
// "ab","c" and "a","bc" differ.
type sum uint64

const sumBegin sum = 14695981039346656037

func (h sum) text(s string) sum {
	for i := range len(s) {
		h = (h ^ sum(s[i])) * 1099511628211
	}
	return (h ^ 0xff) * 1099511628211
}

// number mixes n in and all bits with one another, as FNV alone does not: it
// is the finalizer of splitmix64.
func (h sum) number(n int) sum {
	z := h + sum(n)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// part returns a number in [0, 1).
func (h sum) part() float64 { return float64(h>>11) / (1 << 53) }

// fingerprint is short: it tells values apart and gives none of them away.
type fingerprint [8]byte

func fingerprintOf[T ~string | ~[]byte](v T) fingerprint {
	sum := sha256.Sum256([]byte(v))
	return fingerprint(sum[:8])
}

// String writes it in hexadecimal; "" where nothing was hashed.
func (f fingerprint) String() string {
	if f == (fingerprint{}) {
		return ""
	}
	return hex.EncodeToString(f[:])
}
