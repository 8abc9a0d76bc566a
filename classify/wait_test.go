package classify

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/hint"
)

// waited is the wait of a throttle whose rule has these sources.
func waited(t *testing.T, x *Exchange, w Wait) time.Duration {
	t.Helper()
	c := rules(t, Rule{ID: "it", When: Match{Statuses: statuses(429, 429)}, Then: Verdict{Class: Throttled}, Wait: w})
	return c.Classify(x, nil).Wait
}

func sources(one Source, or ...Source) Wait { return Wait{Source: one, Or: or} }

func TestTheFirstSourceThatSaysSomethingCounts(t *testing.T) {
	ms := Source{Header: "retry-after-ms", Format: hint.Millis}
	s := Source{Header: "X-Wait", Format: hint.Seconds}
	told := func(pairs ...string) *Exchange { return answer("POST", 429, pairs...) }
	for _, row := range []struct {
		name string
		x    *Exchange
		w    Wait
		want time.Duration
	}{
		{"the first", told("Retry-After-Ms", "1500", "X-Wait", "7"), sources(ms, s), 1500 * time.Millisecond},
		{"the second where the first is not there", told("X-Wait", "7"), sources(ms, s), 7 * time.Second},
		{"the second where the first is garbage", told("Retry-After-Ms", "soon", "X-Wait", "7"), sources(ms, s), 7 * time.Second},
		{"the second where the first is negative", told("Retry-After-Ms", "-5", "X-Wait", "7"), sources(ms, s), 7 * time.Second},
		{"the longest of all", told("Retry-After-Ms", "1500", "X-Wait", "7"), Wait{Source: ms, Or: []Source{s}, Longest: true}, 7 * time.Second},
		{"the longest of several lines", told("X-Wait", "3", "X-Wait", "9", "X-Wait", "soon"), sources(s), 9 * time.Second},
		{"a constant behind the others", told(), sources(ms, s, Source{Const: time.Minute}), time.Minute},
		{"the floor of the last where none says anything", told(), sources(ms, Source{Header: "X-Wait", Format: hint.Seconds, Floor: time.Second}), time.Second},
		{"nothing", told(), sources(ms, s), 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := waited(t, row.x, row.w); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestABadValueIsNoWait(t *testing.T) {
	for _, row := range []struct {
		name, value string
		s           Source
		want        time.Duration
	}{
		{"a sentinel", "-1", Source{Format: hint.Seconds, Ignore: []string{"-1"}}, time.Hour},
		{"a word that means nothing", " none ", Source{Format: hint.Seconds, Ignore: []string{"none"}}, time.Hour},
		{"more than is believed", "86400", Source{Format: hint.Seconds, Ceiling: time.Minute}, time.Hour},
		{"as much as is believed", "60", Source{Format: hint.Seconds, Ceiling: time.Minute}, time.Minute},
		{"zero that is not said", "0", Source{Format: hint.Seconds, SkipZero: true}, time.Hour},
		{"zero with a floor", "0", Source{Format: hint.Seconds, Floor: time.Second}, time.Second},
		{"zero", "0", Source{Format: hint.Seconds}, 0},
		{"the past with a floor", "1784081000", Source{Format: hint.EpochSeconds, Floor: time.Second}, time.Second},
		{"not a number", "NaN", Source{Format: hint.Seconds}, time.Hour},
		{"a member", "total=100; resets=41", Source{Format: hint.KeyValue, Key: "resets"}, 41 * time.Second},
		{"a member that is not there", "total=100", Source{Format: hint.KeyValue, Key: "resets"}, time.Hour},
		{"something on top", "2", Source{Format: hint.Seconds, Add: 50 * time.Millisecond}, 2050 * time.Millisecond},
		{"nothing on top of zero", "0", Source{Format: hint.Seconds, Add: 50 * time.Millisecond}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.s.Header = "X-Wait"
			got := waited(t, answer("POST", 429, "X-Wait", row.value), sources(row.s, Source{Const: time.Hour}))
			if got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestInstantsAreMeasuredByTheClockThatIsNamed(t *testing.T) {
	x := answer("GET", 429, "Date", "Wed, 15 Jul 2026 02:04:00 GMT", "X-At", "2026-07-15T02:20:00Z")
	at := Source{Header: "X-At", Format: hint.ISO8601}
	if got, want := waited(t, x, sources(at)), 16*time.Minute; got != want {
		t.Errorf("server: got %v, want %v", got, want)
	}
	at.Local = true
	if got, want := waited(t, x, sources(at)), 6*time.Minute; got != want {
		t.Errorf("local: got %v, want %v", got, want)
	}
}

func TestCalendar(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		c    Calendar
		want time.Duration
	}{
		{"midnight of the Pacific", Calendar{Every: Daily, In: pacific}, 4*time.Hour + 46*time.Minute},
		{"midnight of Greenwich", Calendar{Every: Daily, In: time.UTC}, 21*time.Hour + 46*time.Minute},
		{"the next hour", Calendar{Every: Hourly, In: time.UTC}, 46 * time.Minute},
		{"the next month", Calendar{Every: Monthly, In: time.UTC}, 16*24*time.Hour + 21*time.Hour + 46*time.Minute},
		{"midnight of nobody knows where", Calendar{Every: Daily}, 46 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := waited(t, answer("GET", 429), sources(Source{Calendar: &row.c})); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestAWaitIsComputedFromTheBody(t *testing.T) {
	cost := `{"cost":{"requested":%REQ%,"left":66,"rate":%RATE%}}`
	source := Source{Calc: formula("(requested - left) / rate"), Vars: map[string]Selector{
		"requested": dotted("cost.requested"), "left": dotted("cost.left"), "rate": dotted("cost.rate")}, Floor: 100 * time.Millisecond}
	for _, row := range []struct {
		name, requested, rate string
		want                  time.Duration
	}{
		{"what is missing by what comes back", "166", "50", 2 * time.Second},
		{"a number that is written as a text", `"166"`, "50", 2 * time.Second},
		{"less than nothing", "6", "50", 100 * time.Millisecond},
		{"nothing comes back", "166", "0", time.Hour},
		{"a value that is null", "null", "50", time.Hour},
	} {
		t.Run(row.name, func(t *testing.T) {
			body := regexp.MustCompile("%REQ%").ReplaceAllString(cost, row.requested)
			body = regexp.MustCompile("%RATE%").ReplaceAllString(body, row.rate)
			x := answer("POST", 429).body("application/json", body)
			if got := waited(t, x, sources(source, Source{Const: time.Hour})); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestAWaitStandsInXML(t *testing.T) {
	x := answer("GET", 429).body("text/xml", `<e:error xmlns:e="x"><!-- no --><e:retry unit="s">  <![CDATA[30]]></e:retry><again at="2026-07-15T02:20:00Z"/></e:error>`)
	for _, row := range []struct {
		name string
		s    Source
		want time.Duration
	}{
		{"text", Source{XML: &XMLValue{Name: "retry"}, Format: hint.Seconds}, 30 * time.Second},
		{"attribute", Source{XML: &XMLValue{Name: "again", Attr: "at"}, Format: hint.ISO8601}, 6 * time.Minute},
		{"no such element", Source{XML: &XMLValue{Name: "later"}, Format: hint.Seconds}, 0},
		{"no such attribute", Source{XML: &XMLValue{Name: "again", Attr: "in"}, Format: hint.Seconds}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := waited(t, x, sources(row.s)); got != row.want {
				t.Errorf("got %v, want %v", got, row.want)
			}
		})
	}
}

func TestOnlyASourceInTheBodyAsksForTheBody(t *testing.T) {
	x := answer("GET", 429, "Content-Type", "application/json")
	for _, row := range []struct {
		name string
		w    Wait
		want bool
	}{
		{"a header", sources(Source{Header: "X", Format: hint.Seconds}, Source{Const: 1}), false},
		{"a calendar", sources(Source{Calendar: &Calendar{Every: Daily}}), false},
		{"the second stands there", sources(Source{Header: "X", Format: hint.Seconds}, Source{Path: dotted("x"), Format: hint.Seconds}), true},
		{"a formula", sources(Source{Calc: formula("a"), Vars: map[string]Selector{"a": dotted("a")}}), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := rules(t, Rule{ID: "it", When: Match{Statuses: statuses(429, 429)}, Then: Verdict{Class: Throttled}, Wait: row.w})
			if got := c.Peek(x) > 0; got != row.want {
				t.Errorf("got %t, want %t", got, row.want)
			}
		})
	}
}

func TestXMLTextIsMatched(t *testing.T) {
	c := rules(t, Rule{ID: "it", When: Match{XML: &XMLMatch{Names: []string{"errorCode"}, Value: is("PER_SECOND")}}, Then: Verdict{Class: Throttled}})
	for body, want := range map[string]string{
		"<a><errorCode>PER_SECOND</errorCode></a>":                "it",
		"<a><x:errorCode>\n PER_SECOND\n</x:errorCode></a>":       "it",
		"<a><errorCode><![CDATA[PER_SECOND]]></errorCode></a>":    "it",
		"<a><errorCode>PER&#95;SECOND</errorCode></a>":            "it",
		"<a><errorCode>1</errorCode><errorCode>PER_SECOND":        "it",
		"<a><errorCode/>PER_SECOND</a>":                           "status 500",
		"<a><errorCode></errorCode>PER_SECOND</a>":                "status 500",
		"<a><errorCode><b>PER_SECOND</b></errorCode></a>":         "status 500",
		"<a><errorMessage>PER_SECOND</errorMessage></a>":          "status 500",
		"<a><errorCode><![CDATA[PER&#95;SECOND]]></errorCode>":    "status 500",
		"<a><errorCode><![CDATA[PER_SECOND]]> more</errorCode>":   "status 500",
		"<a><errorCode>PER<!-- never mind -->_SECOND</errorCode>": "it",
	} {
		if got := c.Classify(answer("GET", 500).body("text/xml", body), nil).Rule; got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}

func TestALongTextHidesNothingBehindIt(t *testing.T) {
	c := rules(t, Rule{ID: "it", When: Match{XML: &XMLMatch{Names: []string{"a", "code"}, Value: is("x")}}, Then: Verdict{Class: Throttled}})
	for size := maxValue - 4; size <= maxValue+4; size++ {
		long := strings.Repeat("y", size)
		for _, body := range []string{"<r><a>" + long + "</a><code>x</code></r>", "<r><a><![CDATA[" + long + "]]></a><code>x</code></r>"} {
			if got := c.Classify(answer("GET", 500).body("text/xml", body), nil).Rule; got != "it" {
				t.Errorf("%d bytes: got %q, want it", size, got)
			}
		}
	}
}

func TestAHeaderOfTheProfileSaysWhetherToRepeat(t *testing.T) {
	c := rules(t,
		Rule{ID: "again", Override: Override{Header: "x-again", Yes: is("^yes$"), No: is("^no$")}, When: Match{Statuses: statuses(500, 599)}},
		Rule{ID: "never", When: Match{Statuses: statuses(501, 501)}, Then: Verdict{Class: Permanent}})
	for _, row := range []struct {
		name string
		x    *Exchange
		want Retry
		rule string
	}{
		{"no", answer("GET", 500, "X-Again", "no"), Never, "again: false"},
		{"yes to what the table calls final", answer("GET", 505, "X-Again", "yes"), Idempotent, "again: true"},
		{"yes does not beat a rule", answer("GET", 501, "X-Again", "yes"), Never, "never"},
		{"another status", answer("GET", 429, "X-Again", "no"), Any, "status 429"},
		{"another word", answer("GET", 500, "X-Again", "true"), Idempotent, "status 500"},
		{"the usual header still counts", answer("GET", 500, "X-Should-Retry", "false"), Never, "X-Should-Retry: false"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := c.Classify(row.x, nil)
			if diff := cmp.Diff([]any{got.Retry, got.Rule}, []any{row.want, row.rule}); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

func TestCalc(t *testing.T) {
	numbers := map[string]float64{"a": 6, "b": 3, "zero": 0}
	number := func(name string) (float64, bool) { v, ok := numbers[name]; return v, ok }
	for text, want := range map[string]float64{
		"1+2*3": 7, "(1+2)*3": 9, "8/2/2": 2, "8-2-2": 4, "-a+b": -3, "a*-b": -18, "min(a,b)": 3, "max(a, b, 10.5)": 10.5,
		" ( a - b ) / b ": 1, "max(min(a,1),b)*2": 6, "--a": 6, "min(a)": 6, "1.": 1, "a": 6,
	} {
		if got, ok := formula(text).Eval(number); !ok || got != want {
			t.Errorf("%s: got %v, %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"c", "a/zero", "zero/zero", "a+c", "min(c,a)"} {
		if got, ok := formula(text).Eval(number); ok {
			t.Errorf("%s: got %v, want nothing", text, got)
		}
	}
}

func TestWhatIsNoFormulaIsRefused(t *testing.T) {
	for _, text := range []string{"", "1+", "(a", "a)", "a b", "a^b", "min", "min(", "min(a,", "max()", "a..b", "1.2.3", "$.a", "é", "a+*b", "pow(a,b)"} {
		if c, err := ParseCalc(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, c)
		}
	}
}

// FuzzCalc: no text makes the parser panic, and what it takes, written again,
// computes the same.
func FuzzCalc(f *testing.F) {
	for _, s := range []string{"(a-b)/c", "min(1,2.5)*-a", "((((", "max(a,max(b", "--1", "1e9", "9999999999999999999999"} {
		f.Add(s)
	}
	number := func(string) (float64, bool) { return 2, true }
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCalc(text)
		if err != nil {
			return
		}
		v, ok := c.Eval(number)
		if ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
			t.Fatalf("%q: got %v", text, v)
		}
		again, err := ParseCalc("(" + text + ")+0")
		if err != nil {
			if len(text)+4 > longestCalc || len(text) > deepestCalc {
				return
			}
			t.Fatalf("%q in parentheses: %v", text, err)
		}
		if w, fine := again.Eval(number); fine != ok || ok && w != v {
			t.Fatalf("%q: got %v, %t, in parentheses %v, %t", text, v, ok, w, fine)
		}
	})
}
