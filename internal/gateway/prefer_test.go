package gateway

import (
	"testing"
	"time"
)

func TestPreferWait(t *testing.T) {
	for _, c := range []struct {
		lines []string
		want  time.Duration
		has   bool
	}{
		{[]string{"wait=10"}, 10 * time.Second, true},
		{[]string{"Wait = 10"}, 10 * time.Second, true},
		{[]string{`wait="10"`}, 10 * time.Second, true},
		{[]string{"respond-async, wait=10"}, 10 * time.Second, true},
		{[]string{"respond-async=true , wait=7;x=1"}, 7 * time.Second, true},
		{[]string{"return=minimal", "wait=5"}, 5 * time.Second, true},
		{[]string{"wait=5, wait=9"}, 5 * time.Second, true},
		{[]string{`foo="a, wait=1", wait=2`}, 2 * time.Second, true},
		{[]string{`foo="a\", wait=1", wait=2`}, 2 * time.Second, true},
		{[]string{"wait=99999999999"}, maxBudget, true},
		{[]string{"respond-async; wait=10"}, 0, false}, // a parameter
		{[]string{"wait=x, wait=9"}, 0, false},         // the first counts
		{[]string{"wait=0"}, 0, false},
		{[]string{"wait=-1"}, 0, false},
		{[]string{"wait=+1"}, 0, false},
		{[]string{"wait=1e9"}, 0, false},
		{[]string{"wait=1.5"}, 0, false},
		{[]string{"wait"}, 0, false},
		{[]string{"wait="}, 0, false},
		{[]string{"waiting=3"}, 0, false},
		{[]string{"respond-async"}, 0, false},
		{[]string{""}, 0, false},
		{nil, 0, false},
	} {
		got, has := preferWait(c.lines)
		if got != c.want || has != c.has {
			t.Errorf("%q: got %v %v, want %v %v", c.lines, got, has, c.want, c.has)
		}
	}
}

func FuzzPreferWaitIsNeverNegative(f *testing.F) {
	for _, s := range []string{"wait=10", `a="b;c", wait="3"`, `wait="`, `\`, "wait=9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if d, ok := preferWait([]string{line}); d < 0 || ok && d == 0 {
			t.Fatalf("%q gave %v", line, d)
		}
	})
}
