package token

import (
	"encoding/json"
	"testing"
)

func FuzzLifetimeIsNeverNegativeNorEndless(f *testing.F) {
	for _, seed := range []string{`3600`, `"3600"`, `""`, `null`, `-1`, `1e309`, `"NaN"`, `"-Inf"`, `0x1p10`, `{}`, `"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got := lifetime(json.RawMessage(raw)); got < 0 || got > lifeMax {
			t.Errorf("%q: %v", raw, got)
		}
	})
}

func FuzzParameterIsSetOnce(f *testing.F) {
	f.Add("a=1&key=2", "key", "v")
	f.Add("&&=&%zz", "", "")
	f.Fuzz(func(t *testing.T, raw, name, value string) {
		once := setParam(raw, name, value)
		if twice := setParam(once, name, value); twice != once {
			t.Errorf("%q: once %q, twice %q", raw, once, twice)
		}
	})
}
