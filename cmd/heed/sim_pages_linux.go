package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// forgetStart gives back the pages of the program file that only its start has
// needed: every package of every command initializes itself there, and serving
// takes a third of that. What is needed again is mapped again from the page
// cache. A mapping with pages of our own (a position-independent program has
// some) is left alone, because what was changed in them would be lost.
func forgetStart() {
	self, err := os.Executable()
	if err != nil {
		return // it is a saving, not a need
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range untouched(smaps, self) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m[0], m[1]-m[0], syscall.MADV_DONTNEED)
	}
}

// untouched finds the mappings of file that cannot be written and have no page
// of our own, in the form of proc(5).
func untouched(smaps []byte, file string) (all [][2]uintptr) {
	var m [2]uintptr
	of := false // the lines are about such a mapping
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		switch {
		case len(f) >= 5 && strings.Contains(f[0], "-") && len(f[1]) == 4:
			_, err := fmt.Sscanf(f[0], "%x-%x", &m[0], &m[1])
			of = err == nil && len(f) == 6 && f[5] == file && !strings.Contains(f[1], "w")
		case of && len(f) == 3 && f[0] == "Anonymous:" && f[1] == "0":
			all = append(all, m)
		}
	}
	return all
}
