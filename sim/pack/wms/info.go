package wms

import (
	"encoding/xml"
	"html"
	"math"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

// getInfo tells of the points near a pixel.
func getInfo(x *sim.Exchange) sim.Answer {
	q := read(x)
	c, bad := canvasOf(q)
	if bad != nil {
		return failed(x, *bad)
	}
	asked, bad := layersOf(q.get("query_layers"))
	if bad != nil {
		return failed(x, *bad)
	}
	i, err1 := strconv.Atoi(q.get("i", "x"))
	j, err2 := strconv.Atoi(q.get("j", "y"))
	if err1 != nil || err2 != nil || i < 0 || j < 0 || i >= c.width || j >= c.height {
		return failed(x, exception{"InvalidPoint", "The point is not on the map."})
	}
	var names []string
	for _, l := range asked {
		if !l.queryable {
			return failed(x, exception{"LayerNotQueryable", "Layer " + l.name + " cannot be queried."})
		}
		for n := range l.points {
			p := l.at(x, n)
			right, down := c.view.place(p)
			if math.Hypot(right*float64(c.width)-float64(i), down*float64(c.height)-float64(j)) <= 3 {
				names = append(names, p.name)
			}
		}
	}
	return tell(q.get("info_format"), names)
}

// tell writes the names in the format that was asked for.
func tell(format string, names []string) sim.Answer {
	switch {
	case strings.Contains(format, "json"):
		type object struct {
			Type       string            `json:"type"`
			Properties map[string]string `json:"properties"`
		}
		all := []object{}
		for _, n := range names {
			all = append(all, object{"Feature", map[string]string{"name": n}})
		}
		return sim.JSON(200, struct {
			Type     string   `json:"type"`
			Features []object `json:"features"`
		}{"FeatureCollection", all})
	case strings.Contains(format, "html"):
		var b strings.Builder
		for _, n := range names {
			b.WriteString("<tr><td>" + html.EscapeString(n) + "</td></tr>")
		}
		return sim.Text(200, "text/html", "<html><body><table>"+b.String()+"</table></body></html>\n")
	}
	return sim.Text(200, "text/plain", "name = "+strings.Join(names, "\nname = ")+"\n")
}

// link is where the service is.
type link struct {
	XLink string `xml:"xmlns:xlink,attr"`
	Href  string `xml:"xlink:href,attr"`
}

type verb struct {
	XMLName xml.Name
	Formats []string `xml:"Format"`
	At      link     `xml:"DCPType>HTTP>Get>OnlineResource"`
}

type layerEntry struct {
	Queryable int    `xml:"queryable,attr"`
	Name      string `xml:"Name"`
	Title     string `xml:"Title"`
}

type capabilitiesDoc struct {
	XMLName    xml.Name
	Space      string       `xml:"xmlns,attr,omitempty"`
	Version    string       `xml:"version,attr"`
	Sequence   int          `xml:"updateSequence,attr"`
	Name       string       `xml:"Service>Name"`
	Title      string       `xml:"Service>Title"`
	MaxWidth   int          `xml:"Service>MaxWidth,omitempty"`
	MaxHeight  int          `xml:"Service>MaxHeight,omitempty"`
	Verbs      []verb       `xml:"Capability>Request>Verb"`
	Exceptions []string     `xml:"Capability>Exception>Format"`
	Top        string       `xml:"Capability>Layer>Title"`
	CRS        []string     `xml:"Capability>Layer>CRS"`
	SRS        []string     `xml:"Capability>Layer>SRS"`
	Layers     []layerEntry `xml:"Capability>Layer>Layer"`
}

// sequence is the state of the capabilities, which never change.
const sequence = 7

func capabilities(x *sim.Exchange) sim.Answer {
	q := read(x)
	if text := q.get("updatesequence"); text != "" {
		switch n, err := strconv.Atoi(text); {
		case err != nil || n > sequence:
			return failed(x, exception{"InvalidUpdateSequence", text + " is later than " + strconv.Itoa(sequence) + "."})
		case n == sequence:
			return failed(x, exception{"CurrentUpdateSequence", "Nothing has changed."})
		}
	}
	at := link{"http://www.w3.org/1999/xlink", x.URL("/")}
	name := func(s string) xml.Name { return xml.Name{Local: s} }
	d := capabilitiesDoc{XMLName: name("WMS_Capabilities"), Space: "http://www.opengis.net/wms", Version: q.speaks(), Sequence: sequence,
		Name: "WMS", Title: "A town", MaxWidth: maxSide, MaxHeight: maxSide, Top: "All", Exceptions: []string{"XML", "INIMAGE", "BLANK"}}
	maps := []string{"image/png", "image/jpeg", "image/gif"}
	d.Verbs = []verb{{name("GetCapabilities"), []string{"text/xml"}, at}, {name("GetMap"), maps, at},
		{name("GetFeatureInfo"), []string{"text/plain", "text/html", "application/json"}, at}}
	for _, l := range layers {
		e := layerEntry{Name: l.name, Title: l.title}
		if l.queryable {
			e.Queryable = 1
		}
		d.Layers = append(d.Layers, e)
	}
	if d.Version == "1.3.0" {
		d.CRS = []string{"EPSG:4326", "CRS:84", "EPSG:3857"}
		return document("text/xml; charset=UTF-8", "", d)
	}
	d.XMLName, d.Space, d.SRS, d.MaxWidth, d.MaxHeight = name("WMT_MS_Capabilities"), "", []string{"EPSG:4326", "EPSG:3857"}, 0, 0
	d.Name = "OGC:WMS"
	for i, f := range []string{"xml", "inimage", "blank"} {
		d.Exceptions[i] = "application/vnd.ogc.se_" + f
	}
	head := "<!DOCTYPE WMT_MS_Capabilities SYSTEM \"http://schemas.opengis.net/wms/1.1.1/capabilities_1_1_1.dtd\">\n"
	return document("application/vnd.ogc.wms_xml", head, d)
}
