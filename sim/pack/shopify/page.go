package shopify

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

const maxPage = 250

// walk is what a page_info holds: the filters that the walk began with, and
// where it is.
type walk struct {
	filters url.Values
	begin   int
}

func (w walk) String() string {
	w.filters.Set("begin", strconv.Itoa(w.begin))
	return base64.RawURLEncoding.EncodeToString([]byte(w.filters.Encode()))
}

func walkOf(text string) (walk, bool) {
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return walk{}, false
	}
	filters, err := url.ParseQuery(string(plain))
	if err != nil {
		return walk{}, false
	}
	begin, err := strconv.Atoi(filters.Get("begin"))
	filters.Del("begin")
	return walk{filters, begin}, err == nil && begin >= 0
}

// page takes the rows that are asked for and that keep, told the filters, wants,
// and tells where there are others. Beside page_info only limit and fields are
// taken.
func page[T any](x *sim.Exchange, rows *sim.Table[T], keep func(url.Values, T) bool) (some []T, links string, bad *sim.Refusal) {
	q := x.Request.URL.Query()
	w := walk{filters: q}
	if text := q.Get("page_info"); text != "" {
		for name := range q {
			if name != "page_info" && name != "limit" && name != "fields" {
				return nil, "", &sim.Refusal{Kind: sim.BadRequest, Field: name, Detail: name + " cannot be passed when page_info is present"}
			}
		}
		var ok bool
		if w, ok = walkOf(text); !ok {
			return nil, "", &sim.Refusal{Kind: sim.BadRequest, Field: "page_info", Detail: "Invalid value."}
		}
		if limit := q.Get("limit"); limit != "" {
			w.filters.Set("limit", limit)
		}
	}
	limit := 50
	if text := w.filters.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, "", &sim.Refusal{Kind: sim.BadRequest, Field: "limit", Detail: "must be between 1 and 250"}
		}
		limit = n
	}
	since, _ := strconv.Atoi(w.filters.Get("since_id"))
	var all []T
	for id, v := range rows.All() {
		if n, _ := strconv.Atoi(id); n > since && keep(w.filters, v) {
			all = append(all, v)
		}
	}
	begin := min(w.begin, len(all))
	end := min(begin+limit, len(all))
	return append([]T{}, all[begin:end]...), linksOf(x, w, spot{begin, end, limit, len(all)}), nil
}

// spot is where a page lies in a list.
type spot struct{ begin, end, limit, all int }

// linksOf writes Link.
func linksOf(x *sim.Exchange, w walk, s spot) string {
	var links []string
	add := func(begin int, rel string) {
		w.begin = begin
		links = append(links, "<"+x.URL(x.Path)+"?limit="+strconv.Itoa(s.limit)+"&page_info="+w.String()+`>; rel="`+rel+`"`)
	}
	if s.begin > 0 {
		add(max(s.begin-s.limit, 0), "previous")
	}
	if s.end < s.all {
		add(s.end, "next")
	}
	return strings.Join(links, ", ")
}
