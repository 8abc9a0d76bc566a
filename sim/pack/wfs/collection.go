package wfs

import (
	"encoding/xml"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

func getFeature(x *sim.Exchange) sim.Answer {
	q := read(x)
	if bad := q.unspoken(); bad != nil {
		return failed(x, *bad)
	}
	w, bad := wantedOf(q)
	if bad != nil {
		return failed(x, *bad)
	}
	page, matched := w.find(x)
	if w.ids != nil && matched == 0 {
		return failed(x, exception{"NotFound", "resourceId", "There is no feature " + strings.Join(w.ids, ", ") + "."})
	}
	said := w.told(len(page), matched)
	if q.hits {
		page, said = nil, strconv.Itoa(matched)
	}
	switch format := q.get("outputformat"); {
	case strings.Contains(format, "json"):
		return geoJSON(x, w, page, matched)
	case format != "" && !strings.Contains(strings.ToLower(format), "gml") && !strings.Contains(format, "xml"):
		return failed(x, exception{"InvalidParameterValue", "outputFormat", "There is no format " + format + "."})
	case q.speaks() == "2.0.0":
		follows := ""
		if !q.hits && w.leadsOn(len(page), matched) {
			follows = next(x, w.start+len(page))
		}
		return gml32(x, w, page, [2]string{said, follows})
	case q.speaks() == "1.1.0":
		n := len(page)
		if q.hits {
			n = matched
		}
		return gml31(x, page, n, w.kind)
	}
	return gml2(page, w.kind)
}

// unspoken refuses a version that nobody speaks.
func (q query) unspoken() *exception {
	if q.version == "" || q.speaks() == q.version {
		return nil
	}
	return &exception{"InvalidParameterValue", "version", "Version " + q.version + " is not one of " + strings.Join(versions, ", ") + "."}
}

// next is the address of the page that begins at start.
func next(x *sim.Exchange, start int) string {
	values := x.Request.URL.Query()
	for name := range values {
		if strings.EqualFold(name, "startIndex") {
			values.Del(name)
		}
	}
	values.Set("startIndex", strconv.Itoa(start))
	return x.URL("/") + "?" + values.Encode()
}

func instant(x *sim.Exchange) string { return x.Now().UTC().Format(time.RFC3339) }

// member is one feature in GML.
type member struct {
	XMLName xml.Name
	ID      string `xml:"gml:id,attr,omitempty"`
	FID     string `xml:"fid,attr,omitempty"`
	Name    string `xml:"town:name"`
	Geom    struct {
		Point struct {
			SRS         string `xml:"srsName,attr"`
			ID          string `xml:"gml:id,attr,omitempty"`
			Pos         string `xml:"gml:pos,omitempty"`
			Coordinates string `xml:"gml:coordinates,omitempty"`
		} `xml:"gml:Point"`
	} `xml:"town:geom"`
}

// members writes features: latitude first since GML 3, longitude first before.
func members(k kind, page []feature, old bool) []member {
	all := make([]member, 0, len(page))
	for _, f := range page {
		m := member{XMLName: xml.Name{Local: prefix + ":" + k.name}, Name: f.Name}
		p := &m.Geom.Point
		if old {
			m.FID, p.SRS, p.Coordinates = f.ID, "http://www.opengis.net/gml/srs/epsg.xml#4326", fmt.Sprintf("%g,%g", f.Lon, f.Lat)
		} else {
			m.ID, p.ID, p.SRS, p.Pos = f.ID, f.ID+".geom", "urn:ogc:def:crs:EPSG::4326", fmt.Sprintf("%g %g", f.Lat, f.Lon)
		}
		all = append(all, m)
	}
	return all
}

// wrapped is a feature within its member element.
type wrapped struct{ Feature member }

// gml32 is a page of 2.0.0; said is numberMatched and next.
func gml32(x *sim.Exchange, w wanted, page []feature, said [2]string) sim.Answer {
	doc := struct {
		XMLName  struct{}  `xml:"wfs:FeatureCollection"`
		WFS      string    `xml:"xmlns:wfs,attr"`
		GML      string    `xml:"xmlns:gml,attr"`
		Town     string    `xml:"xmlns:town,attr"`
		At       string    `xml:"timeStamp,attr"`
		Matched  string    `xml:"numberMatched,attr"`
		Returned int       `xml:"numberReturned,attr"`
		Next     string    `xml:"next,attr,omitempty"`
		Members  []wrapped `xml:"wfs:member"`
	}{
		WFS: "http://www.opengis.net/wfs/2.0", GML: "http://www.opengis.net/gml/3.2", Town: space,
		At: instant(x), Matched: said[0], Returned: len(page), Next: said[1],
	}
	for _, m := range members(w.kind, page, false) {
		doc.Members = append(doc.Members, wrapped{m})
	}
	return document("application/gml+xml; version=3.2", doc)
}

// gml31 is a page of 1.1.0, in which the only number is that of the page.
func gml31(x *sim.Exchange, page []feature, n int, k kind) sim.Answer {
	return document("text/xml; subtype=gml/3.1.1", struct {
		XMLName struct{} `xml:"wfs:FeatureCollection"`
		WFS     string   `xml:"xmlns:wfs,attr"`
		GML     string   `xml:"xmlns:gml,attr"`
		Town    string   `xml:"xmlns:town,attr"`
		At      string   `xml:"timeStamp,attr"`
		Number  int      `xml:"numberOfFeatures,attr"`
		Members struct {
			Features []member
		} `xml:"gml:featureMembers"`
	}{
		WFS: "http://www.opengis.net/wfs", GML: "http://www.opengis.net/gml", Town: space, At: instant(x), Number: n,
		Members: struct{ Features []member }{members(k, page, false)},
	})
}

// gml2 is a page of 1.0.0, which tells no number at all.
func gml2(page []feature, k kind) sim.Answer {
	doc := struct {
		XMLName struct{}  `xml:"wfs:FeatureCollection"`
		WFS     string    `xml:"xmlns:wfs,attr"`
		GML     string    `xml:"xmlns:gml,attr"`
		Town    string    `xml:"xmlns:town,attr"`
		Bounded string    `xml:"gml:boundedBy>gml:null"`
		Members []wrapped `xml:"gml:featureMember"`
	}{WFS: "http://www.opengis.net/wfs", GML: "http://www.opengis.net/gml", Town: space, Bounded: "unknown"}
	for _, m := range members(k, page, true) {
		doc.Members = append(doc.Members, wrapped{m})
	}
	return document("text/xml; subtype=gml/2.1.2", doc)
}

type geometry struct {
	Type        string     `json:"type"`
	Coordinates [2]float64 `json:"coordinates"` // longitude first
}

type object struct {
	Type       string            `json:"type"`
	ID         string            `json:"id"`
	Geometry   geometry          `json:"geometry"`
	Properties map[string]string `json:"properties"`
}

// geoJSON is a page as GeoServer writes it: a number, or the word unknown.
func geoJSON(x *sim.Exchange, w wanted, page []feature, matched int) sim.Answer {
	all := []object{}
	for _, f := range page {
		all = append(all, object{"Feature", f.ID, geometry{"Point", [2]float64{f.Lon, f.Lat}}, map[string]string{"name": f.Name}})
	}
	var said any = w.told(len(page), matched)
	if n, err := strconv.Atoi(w.told(len(page), matched)); err == nil {
		said = n
	}
	return sim.JSON(200, struct {
		Type     string   `json:"type"`
		Features []object `json:"features"`
		Matched  any      `json:"numberMatched"`
		Returned int      `json:"numberReturned"`
		At       string   `json:"timeStamp"`
	}{"FeatureCollection", all, said, len(page), instant(x)}).With("Content-Type", "application/json;charset=UTF-8")
}
