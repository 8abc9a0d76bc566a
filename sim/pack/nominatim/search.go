package nominatim

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

const (
	usualResults = 10
	mostResults  = 40
	mostIDs      = 50
	near         = 0.02 // degrees; beyond, reverse finds nothing
)

// known refuses a format that is not there.
func known(x *sim.Exchange) *sim.Answer {
	if formats[format(x)] {
		return nil
	}
	an := sim.Text(400, "application/json; charset=utf-8", `{"error":{"code":400,"message":"Parameter 'format' must be one of: xml, json, jsonv2, geojson"}}`)
	return &an
}

func search(x *sim.Exchange) sim.Answer {
	if bad := known(x); bad != nil {
		return *bad
	}
	q := x.Query("q")
	structured := strings.TrimSpace(strings.Join([]string{x.Query("street"), x.Query("city"), x.Query("country")}, " "))
	switch {
	case q != "" && structured != "":
		return failed(x, 400, "Structured query parameters (street, city, country) cannot be used together with 'q' parameter.")
	case q+structured == "":
		return failed(x, 400, "Nothing to search for.")
	}
	limit := usualResults
	if text := x.Query("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return failed(x, 400, "Parameter 'limit' must be a number.")
		}
		limit = min(max(n, 1), mostResults)
	}
	without := strings.Split(x.Query("exclude_place_ids"), ",")
	found := []place{}
	for n := 1; n <= x.World().Records && len(found) < limit; n++ {
		p := placeAt(x, n)
		if p.has(q+structured) && !slices.Contains(without, strconv.Itoa(p.id())) {
			found = append(found, p)
		}
	}
	details := x.Query("addressdetails") == "1"
	switch f := format(x); f {
	case "xml":
		return searchXML(x, q, found)
	case "geojson":
		return geoJSON(found, details)
	default:
		return many(f, found, details)
	}
}

func many(format string, found []place, details bool) sim.Answer {
	all := []object{}
	for _, p := range found {
		all = append(all, p.object(format, details))
	}
	return sim.JSON(200, all).With("Content-Type", "application/json; charset=utf-8")
}

// searchXML names those that were found, so that the next search leaves them out.
func searchXML(x *sim.Exchange, q string, found []place) sim.Answer {
	doc := struct {
		XMLName struct{}  `xml:"searchresults"`
		At      string    `xml:"timestamp,attr"`
		Query   string    `xml:"querystring,attr"`
		Without string    `xml:"exclude_place_ids,attr,omitempty"`
		More    string    `xml:"more_url,attr,omitempty"`
		Places  []element `xml:"place"`
	}{At: x.Now().UTC().Format("Mon, 02 Jan 06 15:04:05 -0700"), Query: q}
	if len(found) > 0 {
		doc.Without = strings.Trim(x.Query("exclude_place_ids")+","+ids(found), ",")
		values := url.Values{"q": {q}, "format": {"xml"}, "exclude_place_ids": {doc.Without}}
		if limit := x.Query("limit"); limit != "" {
			values.Set("limit", limit)
		}
		doc.More = x.URL("/search") + "?" + values.Encode()
	}
	for _, p := range found {
		e := p.element()
		e.Display = p.display()
		doc.Places = append(doc.Places, e)
	}
	return document(200, doc)
}

func reverse(x *sim.Exchange) sim.Answer {
	if bad := known(x); bad != nil {
		return *bad
	}
	lat, err1 := strconv.ParseFloat(x.Query("lat"), 64)
	lon, err2 := strconv.ParseFloat(x.Query("lon"), 64)
	if err1 != nil || err2 != nil || math.Abs(lat) > 90 || math.IsNaN(lat+lon) {
		return failed(x, 400, "Parameters 'lat' and 'lon' must be numbers, 'lat' from -90 to 90.")
	}
	best, least := place{}, near
	for n := 1; n <= x.World().Records; n++ {
		p := placeAt(x, n)
		if d := math.Hypot(p.lat-lat, p.lon-lon); d < least {
			best, least = p, d
		}
	}
	if best.n == 0 {
		return nothing(x)
	}
	switch f := format(x); f {
	case "xml":
		e := best.element()
		e.Text = best.display()
		return document(200, struct {
			XMLName struct{} `xml:"reversegeocode"`
			At      string   `xml:"timestamp,attr"`
			Query   string   `xml:"querystring,attr"`
			Result  element  `xml:"result"`
			Parts   address  `xml:"addressparts"`
		}{At: x.Now().UTC().Format("Mon, 02 Jan 06 15:04:05 -0700"), Query: x.Request.URL.RawQuery, Result: e, Parts: *best.address()})
	case "geojson":
		return geoJSON([]place{best}, true)
	default:
		return sim.JSON(200, best.object(f, true)).With("Content-Type", "application/json; charset=utf-8")
	}
}

// lookup gives the places with these ids of OpenStreetMap. Those that are not
// there are left out.
func lookup(x *sim.Exchange) sim.Answer {
	if bad := known(x); bad != nil {
		return *bad
	}
	asked := strings.Split(x.Query("osm_ids"), ",")
	switch {
	case x.Query("osm_ids") == "":
		return failed(x, 400, "Parameter 'osm_ids' missing.")
	case len(asked) > mostIDs:
		return failed(x, 400, "Too many object IDs.")
	}
	found := []place{}
	for _, id := range asked {
		if id == "" || !strings.Contains("NWRnwr", id[:1]) {
			return failed(x, 400, "Bad format for OSM ID: "+id)
		}
		n, err := strconv.Atoi(id[1:])
		if err != nil {
			return failed(x, 400, "Bad format for OSM ID: "+id)
		}
		if n -= (place{}).osm(); strings.ToUpper(id[:1]) == "W" && n >= 1 && n <= x.World().Records {
			found = append(found, placeAt(x, n))
		}
	}
	switch f := format(x); f {
	case "xml":
		return searchXML(x, "", found)
	case "geojson":
		return geoJSON(found, true)
	default:
		return many(f, found, true)
	}
}
