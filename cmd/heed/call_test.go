package main

import (
	"net/http"
	"testing"

	"github.com/heedproject/heed/policy"
)

func TestAKeyMakesAWriteRepeatableOnlyIfTheNextCommandSendsTheSame(t *testing.T) {
	key := func(from policy.KeyFrom) policy.Policy {
		return policy.Policy{Key: policy.Key{Header: "X-Key", From: from}}
	}
	for _, c := range []struct {
		name, method, given, header string
		policy                      policy.Policy
		want                        bool
	}{
		{name: "none", method: "POST", want: true},
		{name: "none, of a method that may be repeated", method: "PUT"},
		{name: "given, and the API honours none", method: "POST", given: "k", want: true},
		{name: "given", method: "POST", given: "k", policy: key(policy.KeyGiven)},
		{name: "given as a header", method: "POST", header: "X-Key", policy: key(policy.KeyGiven)},
		{name: "given as the usual header", method: "POST", header: "Idempotency-Key", policy: key(policy.KeyGiven)},
		{name: "not given", method: "POST", policy: key(policy.KeyGiven), want: true},
		{name: "made of what is sent", method: "POST", policy: key(policy.KeyHash)},
		{name: "random", method: "POST", policy: key(policy.KeyRandom), want: true},
		{name: "given, for a method without keys", method: "LOCK", given: "k", policy: key(policy.KeyGiven), want: true},
	} {
		r := &http.Request{Method: c.method, Header: http.Header{}}
		if c.header != "" {
			r.Header.Set(c.header, "k")
		}
		if got := sole(r, c.given, c.policy); got != c.want {
			t.Errorf("key %s: got %v, want %v", c.name, got, c.want)
		}
	}
}
