// Package wfs simulates a Web Feature Service in versions 1.0.0, 1.1.0 and
// 2.0.0: capabilities, descriptions, features as GML or GeoJSON, transactions.
//
// It answers at the root of the pack, /wfs. Names of parameters have no case.
// Requests come as key-value pairs or, GetFeature and Transaction, as XML.
// What it holds to, from OGC 09-025r1 and the sources of MapServer and
// GeoServer: an exception is a report with 200 in 1.0.0 (ServiceException,
// application/vnd.ogc.se_xml) and 1.1.0 (OWS 1.0), and in 2.0.0 (OWS 1.1) has
// a status as MapServer gives it: 400, 404 for NotFound, and 403 for
// OperationProcessingFailed, which looks like a matter of rights. There is no
// throttle of its own: a 429 or 503 is a proxy's, by steps; so is envelope, a
// report with 200, and 403, a failure that looks like a matter of rights.
//
// There are four types of features, each with a habit that was seen:
//
//	town:roads     honest: numberMatched is right, next leads on
//	town:parcels   capped: 100 at once, and numberMatched says 100 (deegree)
//	town:wells     numberMatched is "unknown"
//	town:trees     numberMatched is numberReturned, though there are more (GeoServer 2.4.1)
//
// resultType=hits tells the truth for all of them. In 1.1.0 numberOfFeatures is
// what the page has. bbox has latitude first from 1.1.0 on, unless it ends in
// EPSG:4326, and longitude first in 1.0.0. Truncated GML comes by the steps
// cut-clean (no counting finds it) and truncate. An insert has no key: sent
// twice it is there twice. One without a name is OperationProcessingFailed.
package wfs

import (
	"bytes"
	"encoding/xml"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/heedproject/heed/sim"
)

// Pack returns it.
func Pack() sim.Pack {
	on := func(request string, hits bool) func(*sim.Exchange) bool {
		return func(x *sim.Exchange) bool {
			q := read(x)
			return strings.EqualFold(q.request, request) && q.hits == hits
		}
	}
	return sim.Pack{
		Name:    "wfs",
		Access:  "none",
		Dialect: sim.Dialect{Refuse: refuse, Envelope: envelope},
		Operations: []sim.Operation{
			{Name: "capabilities.get", Route: "GET /", When: on("GetCapabilities", false), Do: capabilities},
			{Name: "types.describe", Route: "GET /", When: on("DescribeFeatureType", false), Do: describe},
			{Name: "features.get", Route: "GET /", When: on("GetFeature", false), Do: getFeature},
			{Name: "features.hits", Route: "GET /", When: on("GetFeature", true), Do: getFeature},
			{Name: "features.query", Route: "POST /", When: on("GetFeature", false), Do: getFeature},
			{Name: "features.count", Route: "POST /", When: on("GetFeature", true), Do: getFeature},
			{Name: "features.transact", Route: "POST /", When: on("Transaction", false), Do: transact},
		},
	}
}

// query is a request, from key-value pairs or from XML.
type query struct {
	request, version string
	hits             bool
	values           map[string]string // by name in lower case
}

func (q query) get(names ...string) string {
	for _, n := range names {
		if v := q.values[n]; v != "" {
			return v
		}
	}
	return ""
}

// posted is what the head of an XML request says.
type posted struct {
	XMLName    xml.Name
	Version    string `xml:"version,attr"`
	Count      string `xml:"count,attr"`
	Most       string `xml:"maxFeatures,attr"`
	Start      string `xml:"startIndex,attr"`
	ResultType string `xml:"resultType,attr"`
	Format     string `xml:"outputFormat,attr"`
	Queries    []struct {
		Types string `xml:"typeNames,attr"`
		Type  string `xml:"typeName,attr"`
	} `xml:"Query"`
}

func read(x *sim.Exchange) query {
	q := query{values: map[string]string{}}
	if p, ok := readXML(x); ok {
		q.request = p.XMLName.Local
		q.values = map[string]string{"version": p.Version, "count": p.Count, "maxfeatures": p.Most, "startindex": p.Start,
			"resulttype": p.ResultType, "outputformat": p.Format}
		if len(p.Queries) > 0 {
			q.values["typenames"] = p.Queries[0].Types + p.Queries[0].Type
		}
	} else {
		pairs := x.Request.URL.Query()
		if x.Request.Method == "POST" {
			pairs, _ = url.ParseQuery(string(x.Body)) // what can be read of it counts
		}
		for _, name := range slices.Sorted(maps.Keys(pairs)) { // of two spellings the same one wins every time
			q.values[strings.ToLower(name)] = pairs[name][0]
		}
		q.request = q.values["request"]
	}
	q.version = q.values["version"]
	q.hits = strings.EqualFold(q.values["resulttype"], "hits")
	return q
}

func readXML(x *sim.Exchange) (p posted, ok bool) {
	if x.Request.Method != "POST" || !bytes.HasPrefix(bytes.TrimSpace(x.Body), []byte("<")) {
		return p, false
	}
	return p, xml.Unmarshal(x.Body, &p) == nil
}

// versions that are spoken, the newest first.
var versions = []string{"2.0.0", "1.1.0", "1.0.0"}

// speaks is the version to answer in: the one that was asked for, or the newest.
func (q query) speaks() string {
	for _, v := range versions {
		if q.version == v {
			return v
		}
	}
	return versions[0]
}

// document writes v as XML.
func document(media string, v any) sim.Answer {
	body, err := xml.Marshal(v)
	if err != nil {
		return sim.Text(500, "text/plain", "the answer cannot be written: "+err.Error())
	}
	return sim.Text(200, media, xml.Header+string(body)+"\n")
}
