package wfs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

// sequence is the state of the capabilities, which never change.
const sequence = 7

// link is where an operation is asked for.
type link struct {
	Href string `xml:"xlink:href,attr"`
}

// operation is one that the capabilities tell of.
type operation struct {
	Name string `xml:"name,attr"`
	Get  *link  `xml:"ows:DCP>ows:HTTP>ows:Get,omitempty"`
	Post *link  `xml:"ows:DCP>ows:HTTP>ows:Post,omitempty"`
}

type typeEntry struct {
	Name  string `xml:"Name"`
	Title string `xml:"Title"`
	CRS   string `xml:"DefaultCRS,omitempty"`
	SRS   string `xml:"DefaultSRS,omitempty"`
	Old   string `xml:"SRS,omitempty"`
}

// capabilities of 1.1.0 and 2.0.0; 1.0.0 has the types only.
type capabilitiesDoc struct {
	XMLName    struct{}    `xml:"WFS_Capabilities"`
	Space      string      `xml:"xmlns,attr"`
	OWS        string      `xml:"xmlns:ows,attr,omitempty"`
	XLink      string      `xml:"xmlns:xlink,attr,omitempty"`
	Town       string      `xml:"xmlns:town,attr"`
	Version    string      `xml:"version,attr"`
	Sequence   int         `xml:"updateSequence,attr"`
	Title      string      `xml:"ows:ServiceIdentification>ows:Title,omitempty"`
	Operations []operation `xml:"ows:OperationsMetadata>ows:Operation,omitempty"`
	Most       *most       `xml:"ows:OperationsMetadata>ows:Constraint,omitempty"`
	Types      []typeEntry `xml:"FeatureTypeList>FeatureType"`
}

// most is how many features a page has by default.
type most struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"ows:DefaultValue"`
}

// negotiate finds the version for capabilities: the first of AcceptVersions
// that is spoken, the one that was asked for, or the nearest older.
func (q query) negotiate() (string, *exception) {
	if list := q.get("acceptversions"); list != "" {
		for v := range strings.SplitSeq(list, ",") {
			if slices.Contains(versions, v) {
				return v, nil
			}
		}
		return "", &exception{"VersionNegotiationFailed", "acceptVersions", "None of " + list + " is spoken."}
	}
	for _, v := range versions {
		if q.version == "" || q.version >= v {
			return v, nil
		}
	}
	return versions[len(versions)-1], nil
}

func capabilities(x *sim.Exchange) sim.Answer {
	q := read(x)
	if text := q.get("updatesequence"); text != "" {
		switch n, err := strconv.Atoi(text); {
		case err != nil || n > sequence:
			return failed(x, exception{"InvalidUpdateSequence", "updateSequence", text + " is later than " + strconv.Itoa(sequence) + "."})
		case n == sequence:
			return failed(x, exception{"CurrentUpdateSequence", "updateSequence", "Nothing has changed."})
		}
	}
	version, bad := q.negotiate()
	if bad != nil {
		return failed(x, *bad)
	}
	doc := capabilitiesDoc{Space: "http://www.opengis.net/wfs", Town: space, Version: version, Sequence: sequence}
	if version != "1.0.0" {
		at := &link{x.URL("/")}
		doc.OWS, doc.XLink, doc.Title = "http://www.opengis.net/ows", "http://www.w3.org/1999/xlink", "A town"
		doc.Operations = []operation{{"GetCapabilities", at, nil}, {"DescribeFeatureType", at, nil}, {"GetFeature", at, at}, {"Transaction", nil, at}}
	}
	if version == "2.0.0" {
		doc.Space, doc.OWS = "http://www.opengis.net/wfs/2.0", "http://www.opengis.net/ows/1.1"
		doc.Most = &most{"CountDefault", strconv.Itoa(pageLimit)}
	}
	for _, k := range kinds {
		e := typeEntry{Name: prefix + ":" + k.name, Title: k.title}
		switch version {
		case "2.0.0":
			e.CRS = "urn:ogc:def:crs:EPSG::4326"
		case "1.1.0":
			e.SRS = "urn:ogc:def:crs:EPSG::4326"
		default:
			e.Old = "EPSG:4326"
		}
		doc.Types = append(doc.Types, e)
	}
	return document("application/xml", doc)
}

// describe gives the schema of the types that were asked for.
func describe(x *sim.Exchange) sim.Answer {
	q := read(x)
	if bad := q.unspoken(); bad != nil {
		return failed(x, *bad)
	}
	asked := kinds
	if names := q.get("typenames", "typename"); names != "" {
		asked = nil
		for name := range strings.SplitSeq(names, ",") {
			k, ok := kindOf(name)
			if !ok {
				return failed(x, exception{"InvalidParameterValue", "typeName", "Feature type " + name + " unknown"})
			}
			asked = append(asked, k)
		}
	}
	return document("application/gml+xml; version=3.2", schemaOf(asked))
}

type schema struct {
	XMLName struct{} `xml:"xsd:schema"`
	XSD     string   `xml:"xmlns:xsd,attr"`
	GML     string   `xml:"xmlns:gml,attr"`
	Town    string   `xml:"xmlns:town,attr"`
	Target  string   `xml:"targetNamespace,attr"`
	Form    string   `xml:"elementFormDefault,attr"`
	Types   []complexType
	Roots   []element
}

type complexType struct {
	XMLName   struct{}  `xml:"xsd:complexType"`
	Name      string    `xml:"name,attr"`
	Extension extension `xml:"xsd:complexContent>xsd:extension"`
}

type extension struct {
	Base     string    `xml:"base,attr"`
	Elements []element `xml:"xsd:sequence>xsd:element"`
}

type element struct {
	XMLName struct{} `xml:"xsd:element"`
	Name    string   `xml:"name,attr"`
	Type    string   `xml:"type,attr"`
	Group   string   `xml:"substitutionGroup,attr,omitempty"`
}

func schemaOf(asked []kind) schema {
	s := schema{XSD: "http://www.w3.org/2001/XMLSchema", GML: "http://www.opengis.net/gml/3.2", Town: space, Target: space, Form: "qualified"}
	for _, k := range asked {
		s.Types = append(s.Types, complexType{Name: k.name + "Type", Extension: extension{"gml:AbstractFeatureType", []element{
			{Name: "name", Type: "xsd:string"}, {Name: "geom", Type: "gml:PointPropertyType"}}}})
		s.Roots = append(s.Roots, element{Name: k.name, Type: prefix + ":" + k.name + "Type", Group: "gml:AbstractFeature"})
	}
	return s
}
