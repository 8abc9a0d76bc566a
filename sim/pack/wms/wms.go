// Package wms simulates a Web Map Service in versions 1.0.0, 1.1.1 and 1.3.0:
// capabilities, maps as PNG, JPEG or GIF, information on features.
//
// It answers at the root of the pack, /wms. Names of parameters have no case.
// What it holds to, from the specifications and the source of MapServer: an
// exception is a report with 200, in 1.0.0 as WMTException, in 1.1.1 as
// application/vnd.ogc.se_xml without a namespace, in 1.3.0 as text/xml in the
// namespace of OGC. EXCEPTIONS may ask for it as a picture instead: INIMAGE
// draws a red cross, BLANK nothing, and no byte of either tells it from a map.
// From 1.3.0 on, EPSG:4326 has latitude first. Some errors have no code, such
// as that of a picture beyond 4096 pixels, which fails every time.
//
// Layers are town:roads and town:wells, and three with a habit:
//
//	town:relief    has nothing that could be queried
//	town:heavy     needs too much memory beyond 1024 × 1024 pixels: MaxMemoryExceeded
//	town:painted   draws its errors into the picture unless EXCEPTIONS says otherwise
//
// The step envelope is a failure without a code in the form that EXCEPTIONS
// asks for; 429 and 503 are of a proxy in front; other media types, charsets
// and namespaces are among the golden exchanges.
package wms

import (
	"encoding/xml"
	"maps"
	"slices"
	"strings"

	"github.com/heedproject/heed/sim"
)

// Pack returns it.
func Pack() sim.Pack {
	on := func(requests ...string) func(*sim.Exchange) bool {
		return func(x *sim.Exchange) bool {
			asked := read(x).get("request")
			for _, r := range requests {
				if strings.EqualFold(asked, r) {
					return true
				}
			}
			return false
		}
	}
	return sim.Pack{
		Name:    "wms",
		Access:  "none",
		Dialect: sim.Dialect{Refuse: refuse, Envelope: envelope},
		Operations: []sim.Operation{
			// 1.0.0 called them capabilities, map and feature_info.
			{Name: "maps.capabilities", Route: "GET /", When: on("GetCapabilities", "capabilities"), Do: capabilities},
			{Name: "maps.get", Route: "GET /", When: on("GetMap", "map"), Do: getMap},
			{Name: "maps.info", Route: "GET /", When: on("GetFeatureInfo", "feature_info"), Do: getInfo},
		},
	}
}

// query is a request: values by name in lower case.
type query map[string]string

func read(x *sim.Exchange) query {
	q := query{}
	pairs := x.Request.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(pairs)) { // of two spellings the same one wins every time
		q[strings.ToLower(name)] = pairs[name][0]
	}
	return q
}

func (q query) get(names ...string) string {
	for _, n := range names {
		if v := q[n]; v != "" {
			return v
		}
	}
	return ""
}

// speaks is the version to answer in: the one asked for, or the nearest older;
// without one the newest.
func (q query) speaks() string {
	asked := q.get("version", "wmtver")
	switch {
	case asked == "" || asked >= "1.3.0":
		return "1.3.0"
	case asked >= "1.1.0":
		return "1.1.1"
	}
	return "1.0.0"
}

// document writes v as XML after a head of its own.
func document(media, head string, v any) sim.Answer {
	body, err := xml.Marshal(v)
	if err != nil {
		return sim.Text(500, "text/plain", "the answer cannot be written: "+err.Error())
	}
	return sim.Text(200, media, xml.Header+head+string(body)+"\n")
}
