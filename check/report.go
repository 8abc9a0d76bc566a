package check

import "time"

// Report is what a run found.
type Report struct {
	Client  Hello         `json:"client"`
	Seed    uint64        `json:"seed"`
	Began   time.Time     `json:"began"`
	Took    time.Duration `json:"took_ns"`
	Grade   string        `json:"grade"`          // A+, A, B, C, D, F, or - where nothing counts
	Score   float64       `json:"score"`          // in [0, 1]
	Thin    bool          `json:"thin,omitempty"` // as in Grade
	Groups  []Grade       `json:"groups"`
	Notes   []string      `json:"notes,omitempty"` // on how the client speaks to the check
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
	// Thin: what passed or failed has less than half of the weight of what is not
	// n/a, so the grade says little.
	Thin bool `json:"thin,omitempty"`
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
	Lacks    Claim         `json:"lacks,omitempty"` // the claim without which it is n/a
	Known    bool          `json:"known_failure,omitempty"`
	Took     time.Duration `json:"took_ns"`
	Timeline []Event       `json:"timeline,omitempty"`
	// Omitted is how many requests the timeline lacks.
	Omitted int `json:"timeline_omitted,omitempty"`
}

// grade adds the results up, by group and over all.
func (r *Report) grade() {
	var names []string
	own := map[string][]Result{}
	for _, one := range r.Results {
		if own[one.Group] == nil {
			names = append(names, one.Group)
		}
		own[one.Group] = append(own[one.Group], one)
	}
	for _, name := range names {
		g := Sum(own[name])
		g.Group = name
		r.Groups = append(r.Groups, g)
	}
	all := Sum(r.Results)
	r.Grade, r.Score, r.Thin = all.Grade, all.Score, all.Thin
}

// Sum is the grade for these results: the weight of what passed as a part of
// what passed or failed. What does not apply, or does not tell, counts for
// nothing; where little is left, the grade is thin.
func Sum(results []Result) (g Grade) {
	good, bad, open := 0, 0, 0
	for _, one := range results {
		weight := max(one.Weight, 1)
		switch one.Mark {
		case Pass:
			g.Passed++
			good += weight
		case Fail:
			g.Failed++
			bad += weight
		case NA:
			g.NA++
		default:
			g.Unknown++
			open += weight
		}
	}
	g.Grade = "-"
	seen := good + bad
	if seen == 0 {
		return g
	}
	g.Thin = seen < open
	g.Score = float64(good) / float64(seen)
	for _, l := range letters {
		if g.Score >= l.least {
			g.Grade = l.name
			break
		}
	}
	return g
}

// Told is the grade as people read it: one that rests on little has a ~.
func (g Grade) Told() string {
	if g.Thin {
		return g.Grade + "~"
	}
	return g.Grade
}

// Told is the grade over all as people read it.
func (r *Report) Told() string { return Grade{Grade: r.Grade, Thin: r.Thin}.Told() }

// letters are the grades and the least score of each.
var letters = []struct {
	name  string
	least float64
}{{"A+", 1}, {"A", 0.93}, {"B", 0.80}, {"C", 0.65}, {"D", 0.50}, {"F", 0}}

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
