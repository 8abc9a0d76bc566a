package check

import (
	"fmt"
	"strconv"
	"time"
)

func passed(format string, args ...any) Verdict { return Verdict{Pass, fmt.Sprintf(format, args...)} }
func failed(format string, args ...any) Verdict { return Verdict{Fail, fmt.Sprintf(format, args...)} }
func unclear(format string, args ...any) Verdict {
	return Verdict{Unknown, fmt.Sprintf(format, args...)}
}

// count writes 1 request, 2 requests.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// brief writes a duration as people read it.
func brief(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + brief(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
}

// said tells what the client believes.
func said(o Outcome) string {
	switch {
	case o.Broken != "":
		return "it " + o.Broken
	case o.OK:
		return "it reported success"
	}
	return "it reported failure"
}

func itoa(n int) string { return strconv.Itoa(n) }
