package call

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/heedproject/heed/policy"
)

func hashed(t *testing.T, k *policy.Key, method, target, record, body string) string {
	t.Helper()
	key, err := HashKey(k, method, target, record, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The key of a queued call must outlive the process and the release.
func TestADerivedKeyNeverChanges(t *testing.T) {
	got := hashed(t, &policy.Key{MaxLen: 255}, "POST", "/v6/bibs?x=1", "b1000001", `{"title":"x"}`)
	if want := "756cdd9a2a9ca632e4133478c55b0e7646dd0ee6"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestADerivedKeyTellsItsPartsApart(t *testing.T) {
	k := &policy.Key{}
	seen := map[string][4]string{}
	for _, w := range [][4]string{
		{"POST", "/a", "1", "x"}, {"POST", "/a1", "", "x"}, {"POST", "/a", "", "1x"}, {"POST", "/a", "1x", ""},
		{"POST/a", "", "1", "x"}, {"PATCH", "/a", "1", "x"}, {"", "POST/a", "1", "x"},
	} {
		key := hashed(t, k, w[0], w[1], w[2], w[3])
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q give the same key", w, other)
		}
		seen[key] = w
	}
}

func TestTheOrderOfMembersCountsUnlessThePolicySaysOtherwise(t *testing.T) {
	const a, b = `{"x":1,"y":{"p":2,"q":[1,2]}}`, ` {"y" : {"q":[1,2],"p":2}, "x":1} `
	if hashed(t, &policy.Key{}, "POST", "/", "", a) == hashed(t, &policy.Key{}, "POST", "/", "", b) {
		t.Error("without any_order: got the same key")
	}
	k := &policy.Key{AnyOrder: true}
	if got, want := hashed(t, k, "POST", "/", "", a), hashed(t, k, "POST", "/", "", b); got != want {
		t.Errorf("with any_order: got %s and %s", got, want)
	}
}

func TestDifferentBodiesDifferInAnyOrderToo(t *testing.T) {
	k := &policy.Key{AnyOrder: true}
	for _, c := range [][2]string{
		{`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"a":1}`, `{"a":1.0}`},
		{`{"a":12345678901234567890}`, `{"a":12345678901234567891}`},
		{`{"a":1}`, `{"a":1}}`},
		{`{"a":1}`, `{"a":1} {"a":1}`},
		{`{"a":1}`, `{"a":1},`},
		{"{\"a\":\"\xff\"}", "{\"a\":\"\xfe\"}"},
		{`{"a":"\ud800"}`, `{"a":"\ud801"}`},
		{`not json`, `not  json`},
	} {
		if hashed(t, k, "POST", "/", "", c[0]) == hashed(t, k, "POST", "/", "", c[1]) {
			t.Errorf("%q and %q give the same key", c[0], c[1])
		}
	}
}

func TestAWriteWithoutABodyHasAKey(t *testing.T) {
	got, err := HashKey(&policy.Key{}, "POST", "/", "", nil)
	if err != nil || len(got) != 40 {
		t.Errorf("got %q, %v, want 40 hexadecimal digits", got, err)
	}
}

func TestABodyThatCannotBeReadGivesNoKey(t *testing.T) {
	broken := errors.New("broken")
	for _, k := range []*policy.Key{{}, {AnyOrder: true}} {
		if _, err := HashKey(k, "POST", "/", "", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("any order %v: got %v, want the error of the body", k.AnyOrder, err)
		}
	}
}

func TestMadeKeysKeepToTheProvidersLength(t *testing.T) {
	k := &policy.Key{MaxLen: 20}
	if got := RandomKey(k, rand.New(rand.NewPCG(1, 2))); len(got) != 20 {
		t.Errorf("random: got %d bytes, want 20", len(got))
	}
	if got := hashed(t, k, "POST", "/", "", ""); len(got) != 20 {
		t.Errorf("derived: got %d bytes, want 20", len(got))
	}
}

func TestRandomKeysDifferAndFollowTheSeed(t *testing.T) {
	one, two := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 1000 {
		key := RandomKey(&policy.Key{MaxLen: 255}, one)
		if again := RandomKey(&policy.Key{MaxLen: 255}, two); key != again {
			t.Fatalf("got %s and %s from the same seed", key, again)
		}
		if seen[key] || len(key) != 32 {
			t.Fatalf("got %q, want 32 digits that were not there before", key)
		}
		seen[key] = true
	}
}

func TestAKeyOfTheCallerIsChecked(t *testing.T) {
	k := &policy.Key{MaxLen: 10}
	for key, ok := range map[string]bool{
		"": true, "abc-123": true, "0123456789": true, "01234567890": false,
		"a\nb": false, "a\x7fb": false, "ключ": false, "a b": true,
	} {
		if err := CheckKey(k, key); (err == nil) != ok {
			t.Errorf("%q: got %v, want accepted %v", key, err, ok)
		}
	}
}

func TestARefusedKeyIsNotRepeatedInTheError(t *testing.T) {
	for _, key := range []string{"secret-secret", "secret\n"} {
		if err := CheckKey(&policy.Key{MaxLen: 10}, key); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want an error without the key", err)
		}
	}
}

func TestAKeyIsQuotedWhereThePolicySaysSo(t *testing.T) {
	for _, c := range []struct {
		key, want string
		quoted    bool
	}{
		{`abc`, `abc`, false},
		{`abc`, `"abc"`, true},
		{`"abc"`, `"abc"`, true},
		{`a"b\c`, `"a\"b\\c"`, true},
		{`"`, `"\""`, true},
		{`""`, `""`, true},
		{``, `""`, true},
		{`"a"b"`, `"\"a\"b\""`, true},
		{`"a\"`, `"\"a\\\""`, true},
		{`"a\"b"`, `"a\"b"`, true},
	} {
		if got := Quote(&policy.Key{Quoted: c.quoted}, c.key); got != c.want {
			t.Errorf("%s, quoted %v: got %s, want %s", c.key, c.quoted, got, c.want)
		}
	}
}

func FuzzHashKey(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":1}}`)
	f.Add(`[1]`, ` [1]`)
	f.Fuzz(func(t *testing.T, a, b string) {
		same := hashed(t, &policy.Key{}, "POST", "/", "", a) == hashed(t, &policy.Key{}, "POST", "/", "", b)
		if same != (a == b) {
			t.Errorf("%q and %q: got the same key %v", a, b, same)
		}
		hashed(t, &policy.Key{AnyOrder: true}, "POST", "/", "", a)
	})
}
