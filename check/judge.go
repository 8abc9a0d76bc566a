package check

import (
	"time"
)

// slack is how much earlier than told a request may come: clocks are read in
// two processes, and timers of some runtimes have whole milliseconds.
const slack = 50 * time.Millisecond

// judge is what a Case judges with.
type judge = func(*Evidence) Verdict

// every takes the first verdict that is no pass, else the last.
func every(all ...judge) judge {
	return func(e *Evidence) (v Verdict) {
		for _, one := range all {
			if v = one(e); v.Mark != Pass {
				return v
			}
		}
		return v
	}
}

// recovers wants the first operation to succeed after so many failures.
func recovers(failures int) judge {
	return func(e *Evidence) Verdict {
		tries, o := e.First()
		switch {
		case len(tries) == 0:
			return failed("no request came, and %s", said(o))
		case len(tries) <= failures && o.OK:
			return failed("%s, and it reported success", count(len(tries), "request"))
		case len(tries) <= failures:
			return failed("%s, then it gave up: %s", count(len(tries), "request"), said(o))
		case len(tries) > failures+1:
			return failed("%s, though number %d was answered %d", count(len(tries), "request"), failures+1, tries[failures].Status)
		case !o.OK:
			return failed("the last of %s was answered %d, yet %s", count(len(tries), "request"), tries[failures].Status, said(o))
		case tries[failures].Status/100 != 2:
			return failed("request %d was answered %d", failures+1, tries[failures].Status)
		}
		return passed("%s, the last of them answered %d", count(len(tries), "request"), tries[failures].Status)
	}
}

// sends wants exactly n requests for the first operation.
func sends(n int) judge {
	return func(e *Evidence) Verdict {
		tries, o := e.First()
		switch {
		case len(tries) == 0:
			return failed("no request came, and %s", said(o))
		case len(tries) > n:
			return failed("%s, %s too many: number %d was answered %s", count(len(tries), "request"),
				count(len(tries)-n, "request"), n, answered(tries[n-1]))
		case len(tries) < n:
			return failed("only %s of %d; %s", count(len(tries), "request"), n, said(o))
		}
		return passed("%s", count(n, "request"))
	}
}

// ends wants the client to have ended by itself.
func ends(e *Evidence) Verdict {
	tries, o := e.First()
	if o.Broken != "" {
		return failed("it %s, after %s", o.Broken, count(len(tries), "request"))
	}
	return passed("%s, then it ended", count(len(tries), "request"))
}

// answered tells what a request got.
func answered(a Attempt) string {
	if a.Status == 0 {
		return "with nothing"
	}
	return itoa(a.Status)
}

// reportsFailure wants the client not to believe that the first operation succeeded.
func reportsFailure(e *Evidence) Verdict {
	tries, o := e.First()
	switch {
	case o.OK && len(tries) == 0:
		return failed("it reported success without a request")
	case o.OK && tries[len(tries)-1].Status < 300:
		return unclear("it asked until nothing failed any more: what it reports of a failure was not seen")
	case o.OK:
		return failed("it reported success, though the last answer was %s", last(tries))
	case o.Broken != "":
		return unclear("it %s", o.Broken)
	}
	return passed("%s after %s", said(o), count(len(tries), "request"))
}

func last(tries []Attempt) string {
	if len(tries) == 0 {
		return "none"
	}
	return answered(tries[len(tries)-1])
}

// effects wants no operation to have taken effect more than once.
func effects(kind string) judge {
	return func(e *Evidence) Verdict {
		done := e.Effects.Kinds[kind]
		if done.Repeated > 0 {
			return failed("the write took effect %s: %s", count(done.Count, "time"), count(len(e.Journal.Entries), "request"))
		}
		return passed("the write took effect %s", count(done.Count, "time"))
	}
}

// waits wants the n-th gap of the first operation to be as long as told.
func waits(gaps ...time.Duration) judge {
	return func(e *Evidence) Verdict {
		tries, o := e.First()
		if len(tries) < 2 {
			return unclear("it sent %s, so its patience was not seen; %s", count(len(tries), "request"), said(o))
		}
		for i, want := range gaps {
			if i+1 >= len(tries) {
				break
			}
			if got := tries[i+1].Since; got < want-slack {
				return failed("request %d came %s after the answer that asked for %s", i+2, brief(got), brief(want))
			}
		}
		return passed("it waited %s where %s were asked for", brief(tries[1].Since), brief(gaps[0]))
	}
}

// comesBack wants the client to try again within d, and not to stay away.
func comesBack(d time.Duration) judge {
	return func(e *Evidence) Verdict {
		tries, o := e.First()
		switch {
		case len(tries) < 2:
			return unclear("it sent %s, so its patience was not seen; %s", count(len(tries), "request"), said(o))
		case tries[1].Gap > d:
			return failed("it waited %s, which nothing asked for", brief(tries[1].Gap))
		}
		return passed("it tried again after %s", brief(tries[1].Gap))
	}
}
