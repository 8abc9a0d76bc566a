package wfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

const (
	space     = "http://town.example/gis"
	prefix    = "town"
	pageLimit = 1000 // without count
	capLimit  = 100  // of a capped type
)

// habit is what a type tells of its number.
type habit uint8

const (
	honest habit = iota
	capped
	unknown
	short
)

// kind is a type of features.
type kind struct {
	name  string
	title string
	habit habit
}

var kinds = []kind{
	{"roads", "Roads", honest},
	{"parcels", "Parcels", capped},
	{"wells", "Wells", unknown},
	{"trees", "Trees", short},
}

// kindOf finds a type by its name, with prefix or without.
func kindOf(name string) (kind, bool) {
	name = strings.TrimPrefix(name, prefix+":")
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

type feature struct {
	ID       string
	Name     string
	Lat, Lon float64
}

func (k kind) open(x *sim.Exchange) stock.Stock[feature] {
	return stock.Open(x, stock.Kind[feature]{
		Name: k.name, Made: x.World().Records,
		ID: func(n int) string { return k.name + "." + strconv.Itoa(n) },
		Number: func(id string) int {
			n, _ := strconv.Atoi(strings.TrimPrefix(id, k.name+"."))
			return n
		},
		Make: func(n int) feature {
			_, family := stock.Person(x, n)
			return feature{ID: k.name + "." + strconv.Itoa(n), Name: family + " " + strconv.Itoa(n),
				Lat: 50 + float64(n%100)/1000, Lon: 8 + float64(n/100)/1000}
		},
	})
}

// wanted is which features a request asks for.
type wanted struct {
	kind   kind
	count  int
	start  int
	ids    []string
	box    []float64 // least latitude and longitude, most of both
	sorted bool      // by name
	down   bool
}

func wantedOf(q query) (w wanted, bad *exception) {
	ids := q.get("resourceid", "featureid")
	name := q.get("typenames", "typename")
	if name == "" && ids != "" {
		name, _, _ = strings.Cut(ids, ".")
	}
	if name == "" {
		return w, &exception{"MissingParameterValue", "typeNames", "The request names no type of features."}
	}
	var ok bool
	if w.kind, ok = kindOf(name); !ok {
		return w, &exception{"InvalidParameterValue", "typeNames", "Feature type " + name + " unknown"}
	}
	if ids != "" {
		w.ids = strings.Split(ids, ",")
	}
	if q.get("filter", "cql_filter") != "" {
		return w, &exception{"OptionNotSupported", "filter", "This simulator filters by bbox and resourceId."}
	}
	if bad = w.readPage(q); bad == nil {
		bad = w.readBox(q)
	}
	return w, bad
}

func (w *wanted) readPage(q query) *exception {
	w.count = pageLimit
	for name, p := range map[string]*int{"count": &w.count, "startIndex": &w.start} {
		given := q.values[strings.ToLower(name)]
		if name == "count" && given == "" {
			given = q.values["maxfeatures"] // before 2.0.0
		}
		if given == "" {
			continue
		}
		n, err := strconv.ParseUint(given, 10, 31)
		if err != nil {
			return &exception{"InvalidParameterValue", "count", "count and startIndex are numbers of features."}
		}
		*p = int(n)
	}
	by := strings.Fields(q.get("sortby"))
	if len(by) > 0 {
		if strings.TrimPrefix(by[0], prefix+":") != "name" {
			return &exception{"InvalidParameterValue", "sortBy", "There is no property " + by[0] + "."}
		}
		w.sorted, w.down = true, len(by) > 1 && strings.HasPrefix(strings.ToUpper(by[1]), "D")
	}
	return nil
}

// readBox reads bbox with the axes in the order of the version or of the
// reference system that it names.
func (w *wanted) readBox(q query) *exception {
	text := q.get("bbox")
	if text == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	east := q.speaks() == "1.0.0" // longitude first
	if len(parts) == 5 {
		east = parts[4] == "EPSG:4326" || east
		parts = parts[:4]
	}
	for _, p := range parts {
		f, err := strconv.ParseFloat(p, 64)
		if err != nil || len(parts) != 4 {
			return &exception{"InvalidParameterValue", "bbox", "bbox has four numbers."}
		}
		w.box = append(w.box, f)
	}
	if east {
		w.box[0], w.box[1], w.box[2], w.box[3] = w.box[1], w.box[0], w.box[3], w.box[2]
	}
	return nil
}

func (w *wanted) takes(f feature) bool {
	if w.ids != nil && !slices.Contains(w.ids, f.ID) {
		return false
	}
	b := w.box
	return b == nil || f.Lat >= b[0] && f.Lon >= b[1] && f.Lat <= b[2] && f.Lon <= b[3]
}

// find returns the page and how many there are in truth.
func (w *wanted) find(x *sim.Exchange) (page []feature, matched int) {
	all, most := w.kind.open(x), w.count
	if w.kind.habit == capped {
		most = min(most, capLimit)
	}
	if w.ids == nil && w.box == nil && !w.sorted { // nothing but the page need be looked at
		for id := range all.IDs() {
			if matched++; matched > w.start && len(page) < most {
				f, _ := all.Get(id)
				page = append(page, f)
			}
		}
		return page, matched
	}
	for _, f := range all.All() {
		if w.takes(f) {
			page = append(page, f)
		}
	}
	if w.sorted {
		slices.SortStableFunc(page, func(a, b feature) int {
			if w.down {
				a, b = b, a
			}
			return strings.Compare(a.Name, b.Name)
		})
	}
	matched = len(page)
	page = page[min(w.start, matched):]
	return page[:min(most, len(page))], matched
}

// told is what numberMatched says, true or not.
func (w *wanted) told(returned, matched int) string {
	switch {
	case w.kind.habit == capped:
		return strconv.Itoa(min(matched, capLimit))
	case w.kind.habit == unknown:
		return "unknown"
	case w.kind.habit == short:
		return strconv.Itoa(returned)
	}
	return strconv.Itoa(matched)
}

// leadsOn tells whether the answer names the next page.
func (w *wanted) leadsOn(returned, matched int) bool {
	return w.kind.habit != short && w.kind.habit != capped && returned > 0 && w.start+returned < matched
}
