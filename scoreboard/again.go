package main

import (
	"context"
	"slices"

	grading "github.com/heedproject/heed/check"
)

// rounds is how often, at most, a case that is not passed is tried again. The whole check
// starts up to 48 cases at once, and on a small machine a client may time out
// because nobody had a core for the server; the more cases have passed the fewer
// are started, so that what a client is said to fail it has failed by itself. A
// fleet that comes back in lock-step does so on every machine.
const (
	rounds = 2
	few    = 10 // cases, which no machine is too small for: their verdict stands
)

// checked is the report on a client, in which what was not passed has been tried
// again, and the version of the client where it does not tell that itself.
func checked(ctx context.Context, p place, s start, seed uint64) (*grading.Report, string, error) {
	r, version, err := check(ctx, p, s, seed, nil)
	if err != nil && ctx.Err() == nil { // on a busy machine a client may not even start in time
		r, version, err = check(ctx, p, s, seed, nil)
	}
	if err != nil {
		return nil, "", err
	}
	for range rounds {
		open := unsettled(r.Results)
		if len(open) == 0 {
			break
		}
		again, _, err := check(ctx, p, s, seed, open)
		if err != nil {
			return nil, "", err
		}
		if replace(r, again, open); len(open) <= few {
			break
		}
	}
	sum(r)
	return r, version, nil
}

// sum adds the results up again.
func sum(r *grading.Report) {
	all := grading.Sum(r.Results)
	r.Grade, r.Score, r.Thin = all.Grade, all.Score, all.Thin
	for i := range r.Groups {
		name := r.Groups[i].Group
		r.Groups[i] = grading.Sum(slices.DeleteFunc(slices.Clone(r.Results), func(one grading.Result) bool { return one.Group != name }))
		r.Groups[i].Group = name
	}
}

// unsettled are the cases that were not passed, though the client claims them, and
// that a busy machine may be to blame for.
func unsettled(all []grading.Result) []string {
	var ids []string
	for _, one := range all {
		lockstep := one.Mark == grading.Fail && one.Group == grading.FleetGroup
		if (one.Mark == grading.Fail || one.Mark == grading.Unknown) && !lockstep {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

// replace puts the results of again in the place of those that r has of the same
// cases, of which ids are to be replaced: a check plays others along with them.
func replace(r, again *grading.Report, ids []string) {
	for _, one := range again.Results {
		i := slices.IndexFunc(r.Results, func(old grading.Result) bool { return old.ID == one.ID })
		if i >= 0 && slices.Contains(ids, one.ID) {
			r.Results[i] = one
		}
	}
}
