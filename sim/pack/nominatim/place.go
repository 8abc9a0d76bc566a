package nominatim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

var (
	towns = []string{"Aldershof", "Birkenau", "Carlsfeld", "Dornbach", "Eichwald", "Falkenstein", "Gruenau", "Hohenfels", "Immental", "Johanneskirch"}
	ways  = []string{"Street", "Lane", "Road", "Square", "Alley"}
)

const country = "Germany"

// place is a road.
type place struct {
	n              int
	name, town     string
	lat, lon, rank float64
}

// placeAt makes place n. They lie on a grid, ten rows to a degree.
func placeAt(x *sim.Exchange, n int) place {
	_, family := stock.Person(x, n)
	return place{
		n: n, name: family + " " + stock.Pick(x, "way", n, ways), town: stock.Pick(x, "town", n, towns),
		lat: 50 + float64(n%50)/100, lon: 8 + float64(n/50)/100, rank: 1 / float64(n+10),
	}
}

func (p place) id() int { return 100_000 + p.n }

// osm is the id of the way in OpenStreetMap.
func (p place) osm() int { return 5_000_000 + p.n }

func (p place) display() string { return p.name + ", " + p.town + ", " + country }

func degrees(f float64) string { return strconv.FormatFloat(f, 'f', 7, 64) }

// box is south, north, west, east.
func (p place) box() [4]string {
	const half = 0.001
	return [4]string{degrees(p.lat - half), degrees(p.lat + half), degrees(p.lon - half), degrees(p.lon + half)}
}

// has tells whether every word of q is in the name.
func (p place) has(q string) bool {
	words := func(s string) []string {
		return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r == ' ' || r == ',' || r == '+' })
	}
	have := " " + strings.Join(words(p.display()), " ") + " "
	for _, w := range words(q) {
		if !strings.Contains(have, " "+w+" ") {
			return false
		}
	}
	return true
}

type address struct {
	Road    string `json:"road" xml:"road"`
	Town    string `json:"town" xml:"town"`
	Country string `json:"country" xml:"country"`
	Code    string `json:"country_code" xml:"country_code"`
}

// object is a place in JSON. class is called category in jsonv2.
type object struct {
	ID         int       `json:"place_id"`
	Licence    string    `json:"licence"`
	Type       string    `json:"osm_type"`
	OSM        int       `json:"osm_id"`
	Lat        string    `json:"lat"`
	Lon        string    `json:"lon"`
	Class      string    `json:"class,omitempty"`
	Category   string    `json:"category,omitempty"`
	Kind       string    `json:"type"`
	Rank       int       `json:"place_rank"`
	Importance float64   `json:"importance"`
	Name       string    `json:"name"`
	Display    string    `json:"display_name"`
	Address    *address  `json:"address,omitempty"`
	Box        [4]string `json:"boundingbox"`
}

const licence = "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright"

func (p place) object(format string, details bool) object {
	o := object{
		ID: p.id(), Licence: licence, Type: "way", OSM: p.osm(), Lat: degrees(p.lat), Lon: degrees(p.lon), Kind: "residential",
		Rank: 26, Importance: p.rank, Name: p.name, Display: p.display(), Box: p.box(), Class: "highway",
	}
	if format == "jsonv2" {
		o.Class, o.Category = "", "highway"
	}
	if details {
		o.Address = p.address()
	}
	return o
}

func (p place) address() *address { return &address{p.name, p.town, country, "de"} }

type geoFeature struct {
	Type       string     `json:"type"`
	Properties object     `json:"properties"`
	Box        [4]float64 `json:"bbox"`
	Geometry   struct {
		Type string     `json:"type"`
		At   [2]float64 `json:"coordinates"`
	} `json:"geometry"`
}

func geoJSON(found []place, details bool) sim.Answer {
	all := []geoFeature{}
	for _, p := range found {
		f := geoFeature{Type: "Feature", Properties: p.object("jsonv2", details), Box: [4]float64{p.lon, p.lat, p.lon, p.lat}}
		f.Geometry.Type, f.Geometry.At = "Point", [2]float64{p.lon, p.lat}
		all = append(all, f)
	}
	return sim.JSON(200, struct {
		Type     string       `json:"type"`
		Licence  string       `json:"licence"`
		Features []geoFeature `json:"features"`
	}{"FeatureCollection", licence, all}).With("Content-Type", "application/json; charset=utf-8")
}

// element is a place in XML.
type element struct {
	ID      int    `xml:"place_id,attr"`
	Type    string `xml:"osm_type,attr"`
	OSM     int    `xml:"osm_id,attr"`
	Rank    int    `xml:"place_rank,attr"`
	Box     string `xml:"boundingbox,attr"`
	Lat     string `xml:"lat,attr"`
	Lon     string `xml:"lon,attr"`
	Display string `xml:"display_name,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func (p place) element() element {
	b := p.box()
	return element{ID: p.id(), Type: "way", OSM: p.osm(), Rank: 26, Box: strings.Join(b[:], ","), Lat: degrees(p.lat), Lon: degrees(p.lon)}
}

// ids joins the ids of places.
func ids(found []place) string {
	all := make([]string, len(found))
	for i, p := range found {
		all[i] = fmt.Sprint(p.id())
	}
	return strings.Join(all, ",")
}
