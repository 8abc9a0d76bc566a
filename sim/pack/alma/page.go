package alma

import (
	"iter"
	"strconv"

	"github.com/heedproject/heed/sim"
)

const (
	usualPage = 10
	maxPage   = 100
)

// value is a code with what it means.
type value struct {
	Value string `json:"value" xml:",chardata"`
	Desc  string `json:"desc,omitempty" xml:"desc,attr,omitempty"`
}

// window is which part of a list was asked for.
type window struct{ limit, offset int }

func windowOf(x *sim.Exchange) (window, bool) {
	w := window{usualPage, 0}
	for name, p := range map[string]*int{"limit": &w.limit, "offset": &w.offset} {
		if text := x.Query(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return w, false
			}
			*p = n
		}
	}
	w.limit = min(w.limit, maxPage)
	return w, true
}

// part takes the window out of all, and counts them. Beyond the end the total
// is nil, as clients report.
func part[T any](w window, all iter.Seq[T]) (found []T, total *int) {
	n := 0
	found = []T{}
	for v := range all {
		if n++; n > w.offset && len(found) < w.limit {
			found = append(found, v)
		}
	}
	if w.offset > 0 && w.offset >= n {
		return found, nil
	}
	return found, &n
}

// empty is the answer where nothing is left to tell.
func empty() sim.Answer { return sim.Answer{Status: 204, Fields: [][2]string{{"Content-Type", ""}}} }

// listed is whose things are asked for, and which part of them; bad is the
// answer where the user or the part makes no sense.
func listed(x *sim.Exchange) (user string, w window, bad *sim.Answer) {
	user = x.Value("user")
	if _, ok := usersOf(x).Get(user); !ok {
		an := noUser(x, user)
		return user, w, &an
	}
	w, ok := windowOf(x)
	if !ok {
		an := x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "limit and offset are numbers"})
		return user, w, &an
	}
	return user, w, nil
}
