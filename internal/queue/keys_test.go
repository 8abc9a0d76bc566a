package queue

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The vector of c2sp.org/XAES-256-GCM, the one whose key has its high bit off.
func TestTheCipherIsTheSpecifiedOne(t *testing.T) {
	var secret [32]byte
	for i := range secret {
		secret[i] = 1
	}
	nonce := []byte("ABCDEFGHIJKLMNOPQRSTUVWX")
	got := hex.EncodeToString(makeKey(secret).derive(nonce).Seal(nil, nonce[12:], []byte("XAES-256-GCM"), nil))
	if want := "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"; got != want {
		t.Errorf("sealed: got %s, want %s", got, want)
	}
}

func TestWhatIsSealedOpensForItsOwnerOnly(t *testing.T) {
	k := NewKeys(NewKey())
	to := Bound{"id", "sierra", "request"}
	sealed := k.Seal(to, []byte("secret"))
	got, err := k.Open(to, sealed)
	if err != nil || string(got) != "secret" {
		t.Errorf("open: got %q, %v, want secret", got, err)
	}
	for _, other := range []Bound{{"id2", "sierra", "request"}, {"id", "alma", "request"}, {"id", "sierra", "answer"}, {"idsierra", "", "request"}} {
		if _, err := k.Open(other, sealed); !errors.Is(err, ErrKey) {
			t.Errorf("open as %v: got %v, want ErrKey", other, err)
		}
	}
}

func TestAChangedRecordIsRefused(t *testing.T) {
	k := NewKeys(NewKey())
	to := Bound{"id", "sierra", "request"}
	sealed := k.Seal(to, []byte("secret"))
	for i := range sealed {
		changed := append([]byte(nil), sealed...)
		changed[i] ^= 1
		if _, err := k.Open(to, changed); !errors.Is(err, ErrKey) {
			t.Fatalf("byte %d changed: got %v, want ErrKey", i, err)
		}
	}
	for n := range sealed {
		if _, err := k.Open(to, sealed[:n]); !errors.Is(err, ErrKey) {
			t.Fatalf("cut to %d bytes: got %v, want ErrKey", n, err)
		}
	}
}

func TestARingOpensWhatItsOldKeysSealed(t *testing.T) {
	old, fresh := NewKey(), NewKey()
	to := Bound{"id", "sierra", "request"}
	sealed := NewKeys(old).Seal(to, []byte("secret"))
	if got, err := NewKeys(fresh, old).Open(to, sealed); err != nil || string(got) != "secret" {
		t.Errorf("with the old key: got %q, %v, want secret", got, err)
	}
	_, err := NewKeys(fresh).Open(to, sealed)
	if !errors.Is(err, ErrKey) || !strings.Contains(err.Error(), old.ID()) {
		t.Errorf("without it: got %v, want ErrKey that names %s", err, old.ID())
	}
}

func TestAKeyFileIsReadBack(t *testing.T) {
	a, b := NewKey(), NewKey()
	k, err := ReadKeys(strings.NewReader("# made by heed\n\n" + a.Reveal() + "\n" + b.Reveal() + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(k.IDs(), []string{a.ID(), b.ID()}); diff != "" {
		t.Errorf("ids (-got +want):\n%s", diff)
	}
}

func TestABadKeyFileSaysWhichLine(t *testing.T) {
	a := NewKey()
	short := strings.TrimSuffix(a.Reveal(), "=")
	for _, tt := range []struct{ name, file, want string }{
		{"empty", "# nothing\n", "holds no key"},
		{"not a key", "\nhello\n", "line 2: not a key"},
		{"cut secret", short, "not 32 bytes"},
		{"foreign id", strings.Replace(a.Reveal(), a.ID(), "0011223344556677", 1), "belongs to another id"},
		{"twice", a.Reveal() + "\n" + a.Reveal(), "line 2: key " + a.ID() + " stands there twice"},
	} {
		_, err := ReadKeys(strings.NewReader(tt.file))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), strings.Fields(a.Reveal())[2][:20]) {
			t.Errorf("%s: the error shows the secret: %v", tt.name, err)
		}
	}
}

func TestAKeyPrintsAsItsID(t *testing.T) {
	k := NewKey()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got, want := fmt.Sprintf(verb, k), "key "+k.ID(); got != want {
			t.Errorf("%s: got %s, want %s", verb, got, want)
		}
	}
}

// TestPrintsAreThoseThatStoresHave has digests that another library made of
// the parts, each preceded by its length in eight bytes.
func TestPrintsAreThoseThatStoresHave(t *testing.T) {
	var secret [32]byte
	for i := range secret {
		secret[i] = 1
	}
	k := NewKeys(makeKey(secret))
	c := Call{Facts: Facts{Endpoint: "sierra", Method: "POST"}, Request: Request{Path: "/a", Key: "k"}}
	for _, tt := range []struct{ body, want string }{
		{"x", "a49d13ff05874ec8dfe025be354ed37f"},
		{"", "57dd2019116aa3e17719bb223268496a"},
		{"x", "a49d13ff05874ec8dfe025be354ed37f"},
	} {
		c.Body = []byte(tt.body)
		p := k.Prints(&c)[0]
		if got, want := hex.EncodeToString(p.Key), "e48ca37acc413cd821d49f515adf135e"; got != want {
			t.Errorf("key: got %s, want %s", got, want)
		}
		if got := hex.EncodeToString(p.Body); got != tt.want {
			t.Errorf("body %q: got %s, want %s", tt.body, got, tt.want)
		}
	}
}

func TestPrintsTellRequestsApart(t *testing.T) {
	k := NewKeys(NewKey())
	base := Call{Facts: Facts{Endpoint: "sierra", Method: "POST"}, Request: Request{Path: "/a", Key: "k", Body: []byte("x")}}
	first := k.Prints(&base)[0]
	for _, tt := range []struct {
		name            string
		change          func(*Call)
		sameKey, sameAs bool
	}{
		{"nothing", func(*Call) {}, true, true},
		{"body", func(c *Call) { c.Body = []byte("y") }, true, false},
		{"path", func(c *Call) { c.Path = "/b" }, true, false},
		{"method", func(c *Call) { c.Method = "PUT" }, true, false},
		{"key", func(c *Call) { c.Key = "l" }, false, true},
		{"endpoint", func(c *Call) { c.Endpoint = "alma" }, false, true},
		{"a letter that moves between parts", func(c *Call) { c.Endpoint, c.Key = "sierr", "ak" }, false, true},
	} {
		c := base
		tt.change(&c)
		got := k.Prints(&c)
		if same := string(got[0].Key) == string(first.Key); same != tt.sameKey {
			t.Errorf("%s: same key: got %v, want %v", tt.name, same, tt.sameKey)
		}
		if same := string(got[0].Body) == string(first.Body); same != tt.sameAs {
			t.Errorf("%s: same request: got %v, want %v", tt.name, same, tt.sameAs)
		}
	}
}
