package main

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-0128f000 r-xp 00000000 08:01 42 /bin/heed
Size:              15000 kB
Anonymous:             0 kB
0128f000-01d00000 r--p 00e8f000 08:01 42 /bin/heed
Anonymous:             4 kB
01d00000-01d90000 rw-p 01900000 08:01 42 /bin/heed
Anonymous:             0 kB
01d90000-01da0000 r--p 01990000 08:01 42 /bin/heed
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 08:01 43 /lib/libc.so
Anonymous:             0 kB
7f0000001000-7f0000002000 ---p 00000000 00:00 0
Anonymous:             0 kB
`

func TestOnlyMappingsOfTheProgramThatNobodyChangedAreGivenBack(t *testing.T) {
	got := untouched([]byte(smaps), "/bin/heed")
	if diff := cmp.Diff(got, [][2]uintptr{{0x400000, 0x128f000}, {0x1d90000, 0x1da0000}}); diff != "" {
		t.Error(diff)
	}
}

// fileRSS is how many kB of files are mapped into this process.
func fileRSS(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("there is no /proc here")
	}
	_, rest, _ := strings.Cut(string(text), "RssFile:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheStartIsForgotten(t *testing.T) {
	before := fileRSS(t)
	forgetStart()
	if after := fileRSS(t); after >= before {
		t.Errorf("%d kB are mapped, before it were %d", after, before)
	}
}
