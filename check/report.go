package check

import "time"

// Report is what a run found.
type Report struct {
	Client  Hello         `json:"client"`
	Seed    uint64        `json:"seed"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took_ns"`
	Grade   string        `json:"grade"` // A+, A, B, C, D, F, or - where nothing counts
	Score   float64       `json:"score"` // in [0, 1]
	Groups  []Grade       `json:"groups"`
	Results []Result      `json:"results"`
}

// Grade is how a client did in one group.
type Grade struct {
	Group   string  `json:"group"`
	Grade   string  `json:"grade"`
	Score   float64 `json:"score"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	NA      int     `json:"not_applicable"`
	Unknown int     `json:"unknown"`
}

// Result is how a client did in one case.
type Result struct {
	ID       string        `json:"id"`
	Group    string        `json:"group"`
	Title    string        `json:"title"`
	Rule     Rule          `json:"rule"`
	Weight   int           `json:"weight"`
	Mark     Mark          `json:"verdict"`
	Cause    string        `json:"cause"`
	Known    bool          `json:"known_failure,omitempty"`
	Took     time.Duration `json:"took_ns"`
	Timeline []Event       `json:"timeline,omitempty"`
	// Omitted is how many requests the timeline lacks.
	Omitted int `json:"timeline_omitted,omitempty"`
}

// grade adds the results up: the weight of what passed as a part of what
// passed or failed. What does not apply, or does not tell, counts for nothing.
func (r *Report) grade() {
	at := map[string]int{}
	var all tally
	tallies := []tally{}
	for _, one := range r.Results {
		i, ok := at[one.Group]
		if !ok {
			i = len(r.Groups)
			at[one.Group] = i
			r.Groups = append(r.Groups, Grade{Group: one.Group})
			tallies = append(tallies, tally{})
		}
		tallies[i].add(one)
		all.add(one)
		g := &r.Groups[i]
		switch one.Mark {
		case Pass:
			g.Passed++
		case Fail:
			g.Failed++
		case NA:
			g.NA++
		default:
			g.Unknown++
		}
	}
	for i, t := range tallies {
		r.Groups[i].Grade, r.Groups[i].Score = t.grade()
	}
	r.Grade, r.Score = all.grade()
}

type tally struct{ good, bad int }

func (t *tally) add(r Result) {
	switch r.Mark {
	case Pass:
		t.good += r.Weight
	case Fail:
		t.bad += r.Weight
	}
}

// letters are the grades and the least score of each.
var letters = []struct {
	name  string
	least float64
}{{"A+", 1}, {"A", 0.93}, {"B", 0.80}, {"C", 0.65}, {"D", 0.50}, {"F", 0}}

func (t tally) grade() (string, float64) {
	if t.good+t.bad == 0 {
		return "-", 0
	}
	score := float64(t.good) / float64(t.good+t.bad)
	for _, l := range letters {
		if score >= l.least {
			return l.name, score
		}
	}
	return "F", score
}

// Reaches tells whether the grade is at least least, and whether least is one.
func (r *Report) Reaches(least string) (reached, known bool) {
	for _, l := range letters {
		if l.name == least {
			return r.Grade != "-" && r.Score >= l.least, true
		}
	}
	return false, false
}

// Surprises are cases whose result differs from the known failures: known ones
// that pass, and others that fail.
func (r *Report) Surprises() (mended, broken []string) {
	for _, one := range r.Results {
		switch {
		case one.Known && one.Mark == Pass:
			mended = append(mended, one.ID)
		case !one.Known && one.Mark == Fail:
			broken = append(broken, one.ID)
		}
	}
	return mended, broken
}
