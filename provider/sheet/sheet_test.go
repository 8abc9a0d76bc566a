package sheet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/provider/sheet"
)

func TestNearFindsWhatWasMeant(t *testing.T) {
	known := []string{"max_age", "budget", "ceiling", "url"}
	for word, want := range map[string]string{
		"max-age": "max_age", "maxAge": "max_age", "budgte": "budget", "ceilling": "ceiling", "ulr": "url",
		"colour": "", "": "", strings.Repeat("budget", 99): "",
	} {
		if got := sheet.Near(word, known); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// read gives text to v and returns the message of the problem, if any.
func read(v sheet.Value, text string) string {
	var r sheet.Reader
	v.Read(&r, &sheet.Node{Text: text, Plain: true}, "x")
	if len(r.Problems) == 0 {
		return ""
	}
	return r.Problems[0].Message
}

func TestRate(t *testing.T) {
	for text, want := range map[string]float64{
		"25/s": 25, "1000/min": 1000.0 / 60, "3/2s": 1.5, "0.5/s": 0.5, "100000/d": 100000.0 / 86400, "90/15min": 0.1,
	} {
		var got float64
		if problem := read(sheet.Rate(&got), text); problem != "" || got != want {
			t.Errorf("%s: got %v %s, want %v", text, got, problem, want)
		}
		var again float64
		if problem := read(sheet.Rate(&again), sheet.ShowRate(got)); problem != "" || again != got {
			t.Errorf("%s: is shown as %s, which reads as %v %s", text, sheet.ShowRate(got), again, problem)
		}
	}
}

func TestWhatIsNoRateIsRefused(t *testing.T) {
	for _, text := range []string{"25", "/s", "25/", "-1/s", "1e9/s", "25/0s", "25/week", "25/s/s"} {
		var got float64
		if read(sheet.Rate(&got), text) == "" {
			t.Errorf("%q: got %v, want a problem", text, got)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "10": 10, "64KiB": 64 << 10, "1GB": 1e9, "8191TiB": 8191 << 40} {
		var got int64
		if problem := read(sheet.Size(&got, true), text); problem != "" || got != want {
			t.Errorf("%s: got %v %s, want %v", text, got, problem, want)
		}
	}
	for _, text := range []string{"1.5GiB", "-1", "64kb", "9223372036854775808", "8388608TiB"} {
		var got int64
		if read(sheet.Size(&got, true), text) == "" {
			t.Errorf("%s: got %v, want a problem", text, got)
		}
	}
}

func TestDurationNeedsAUnit(t *testing.T) {
	for text, want := range map[string]string{
		"90s": "", "1m30s": "", "0s": "", "0": "", "90": `"90" has no unit`, "-1s": `"-1s" is negative`,
		"1d": `"1d" is not a duration`, "NaN": `"NaN" has no unit`, "999999999h": `"999999999h" is not a duration`,
	} {
		var d time.Duration
		if got := read(sheet.Duration(&d), text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestShowDurationLeavesOutUnitsThatSayZero(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 90 * time.Minute: "1h30m", 0: "0s",
		10 * time.Minute: "10m", 20 * time.Hour: "20h", time.Hour + time.Second: "1h0m1s",
	} {
		if got := sheet.ShowDuration(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTheSameValueIsToldOfOnce(t *testing.T) {
	var r sheet.Reader
	n := &sheet.Node{Line: 3}
	r.Problem(n, "a.b", "", "first")
	r.Problem(n, "a.b", "", "what follows from it")
	if len(r.Problems) != 1 || r.Problems[0].Message != "first" {
		t.Errorf("got %v, want the first alone", r.Problems)
	}
}

func TestYAMLQuotesWhatWouldReadAsSomethingElse(t *testing.T) {
	texts := []string{"word", "on", "null", "1e3", "a: b", "a #b", "- a", "", " a", "*a", "{", "line\nbreak", "env:KEY", "#", "π"}
	n := &sheet.Node{Kind: sheet.Mapping, Members: []sheet.Member{{Key: &sheet.Node{Text: "no"}, Value: &sheet.Node{Kind: sheet.Sequence}}}}
	list := n.Members[0].Value
	for _, text := range texts {
		list.Items = append(list.Items, &sheet.Node{Text: text})
	}
	got := string(sheet.YAML(n))
	want := `"no":
  - word
  - "on"
  - "null"
  - "1e3"
  - "a: b"
  - "a #b"
  - "- a"
  - ""
  - " a"
  - "*a"
  - "{"
  - "line\nbreak"
  - env:KEY
  - "#"
  - "π"
`
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("differs (-got +want):\n%s", diff)
	}
}

func TestThePathOfTheOneIsThatOfTheListItStandsIn(t *testing.T) {
	n, problems := sheet.ReadYAML("x", []byte("one: [{a: b}]\ntwo: [{a: b}, {a: c}]\nplain: {a: b}\n"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := sheet.Reader{File: "x"}
	item := func(p *map[string]string) sheet.Value { return sheet.Map[string]{P: p, One: sheet.Text} }
	var one, two []map[string]string
	var plain map[string]string
	sheet.Block{Fields: []sheet.Field{{Name: "one", Value: sheet.List(&one, item)}, {Name: "two", Value: sheet.List(&two, item)}, {Name: "plain", Value: item(&plain)}}}.Read(&r, n, "")
	for path, want := range map[string]string{
		"one.a": "one[0].a", "one.z": "one[0].z", "one[0].a": "one[0].a", "two.a": "two.a", "plain.a": "plain.a", "plain.z": "plain.z", "none.a": "none.a", "one": "one",
	} {
		if got := r.Listed(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestAShortWordIsNotTakenForAnyOther(t *testing.T) {
	known := []string{"ok", "throttled"}
	if got := sheet.Near("foo", known); got != "" {
		t.Errorf("got %q for foo, want no guess", got)
	}
	if got := sheet.Near("og", known); got != "ok" {
		t.Errorf("got %q for og, want ok", got)
	}
}
