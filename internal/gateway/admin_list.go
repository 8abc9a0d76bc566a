package gateway

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/internal/queue"
)

// shownCall is a call as operators are told of it.
type shownCall struct {
	standing
	Tenant   string      `json:"tenant,omitempty"`
	Gate     string      `json:"gate"`
	Revision int         `json:"revision"`
	Size     int         `json:"size"`
	Repeats  bool        `json:"repeatable"`
	Note     *queue.Note `json:"note,omitempty"`
}

func shown(f *queue.Facts, now time.Time) shownCall {
	return shownCall{standingOf(f, now), f.Tenant, f.Gate, f.Revision, f.Size, f.Repeatable, f.Note}
}

// listed is a page.
type listed struct {
	Calls []shownCall `json:"calls"`
	Next  string      `json:"next,omitempty"`
}

func (d *desk) list() error {
	f, err := filterOf(d.r.URL.Query())
	if err != nil {
		return err
	}
	if f.Limit == 0 {
		f.Limit = queue.DefaultLimit
	}
	out, now := listed{Calls: []shownCall{}}, time.Now()
	for most := f.Limit; len(out.Calls) == 0 || out.Next != "" && len(out.Calls) < most; {
		f.Limit = most - len(out.Calls)
		page, err := d.Store.List(d.r.Context(), f)
		if err != nil {
			return err
		}
		for i := range page.Calls {
			if c := &page.Calls[i]; !Watchman(c.Endpoint, c.State) {
				out.Calls = append(out.Calls, shown(c, now))
			}
		}
		if f.After, out.Next = page.Next, page.Next; page.Next == "" {
			break
		}
	}
	reply(d.w, out)
	return nil
}

// maxPage is the most that one page has.
const maxPage = 1000

// filterOf reads a filter out of the query.
func filterOf(q url.Values) (queue.Filter, error) {
	var f queue.Filter
	var err error
	for name, values := range q {
		v := strings.Join(values, ",")
		switch name {
		case "state":
			if f.States, err = statesOf(strings.Split(v, ",")); err != nil {
				return f, err
			}
		case "endpoint":
			f.Endpoint = v
		case "gate":
			f.Gate = v
		case "tenant":
			f.Tenant = v
		case "correlation_id":
			f.CorrelationID = v
		case "reason":
			f.Reason = v
		case "class":
			f.Class = v
		case "from":
			f.CreatedFrom, err = instantOf(name, v)
		case "before":
			f.CreatedBefore, err = instantOf(name, v)
		case "kept_before":
			f.KeptBefore, err = instantOf(name, v)
		case "after":
			f.After = v
		case "limit":
			if f.Limit, err = strconv.Atoi(v); err != nil || f.Limit < 1 || f.Limit > maxPage {
				return f, wrong("limit is a number from 1 to %d", maxPage)
			}
		default:
			return f, wrong("the parameter %.40q is not known", name)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func instantOf(name, v string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		return t, wrong("%s is a time such as 2026-07-15T02:14:00Z", name)
	}
	return t, nil
}

// statesOf reads states. A call that waits is queued.
func statesOf(words []string) ([]queue.State, error) {
	var states []queue.State
	for _, w := range words {
		if w == "waiting" {
			w = "queued"
		}
		var s queue.State
		if err := s.UnmarshalText([]byte(w)); err != nil {
			return nil, wrong("%v", err)
		}
		states = append(states, s)
	}
	return states, nil
}
