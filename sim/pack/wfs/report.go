package wfs

import (
	"strings"

	"github.com/heedproject/heed/sim"
)

// exception is what went wrong.
type exception struct {
	code, locator, text string
}

// report10 is the report of 1.0.0.
type report10 struct {
	XMLName   struct{} `xml:"ServiceExceptionReport"`
	Space     string   `xml:"xmlns,attr"`
	Version   string   `xml:"version,attr"`
	Exception struct {
		Code    string `xml:"code,attr,omitempty"`
		Locator string `xml:"locator,attr,omitempty"`
		Text    string `xml:",chardata"`
	} `xml:"ServiceException"`
}

// reportOWS is that of the later ones.
type reportOWS struct {
	XMLName   struct{} `xml:"ows:ExceptionReport"`
	Space     string   `xml:"xmlns:ows,attr"`
	Version   string   `xml:"version,attr"`
	Exception struct {
		Code    string `xml:"exceptionCode,attr"`
		Locator string `xml:"locator,attr,omitempty"`
		Text    string `xml:"ows:ExceptionText"`
	} `xml:"ows:Exception"`
}

// statuses of OGC 09-025r1, table D.2, as MapServer has them.
var statuses = map[string]int{"OperationProcessingFailed": 403, "NotFound": 404}

// failed writes e in the words and with the status of the version asked for.
func failed(x *sim.Exchange, e exception) sim.Answer {
	version := read(x).speaks()
	an := report(version, e)
	if version != "2.0.0" {
		return an
	}
	if an.Status = statuses[e.code]; an.Status == 0 {
		an.Status = 400
	}
	return an
}

// report writes e with 200.
func report(version string, e exception) sim.Answer {
	if version == "1.0.0" {
		r := report10{Space: "http://www.opengis.net/ogc", Version: "1.2.0"}
		r.Exception.Code, r.Exception.Locator, r.Exception.Text = e.code, e.locator, e.text
		return document("application/vnd.ogc.se_xml", r)
	}
	r := reportOWS{Space: "http://www.opengis.net/ows/1.1", Version: "2.0.0"}
	media := "application/xml"
	if version == "1.1.0" {
		r.Space, r.Version, media = "http://www.opengis.net/ows", "1.0.0", "text/xml; charset=UTF-8"
	}
	r.Exception.Code, r.Exception.Locator, r.Exception.Text = e.code, e.locator, e.text
	return document(media, r)
}

// codes of the kinds that the server itself has words for; the others are of
// the proxy in front.
var codes = map[sim.Kind]string{
	sim.BadRequest: "InvalidParameterValue", sim.Forbidden: "OperationProcessingFailed", sim.NotFound: "NotFound",
	sim.Failed: "NoApplicableCode", sim.Unknown: "OperationNotSupported",
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	code, own := codes[r.Kind]
	if !own {
		an := sim.Text(r.StatusOr(r.Kind.DefaultStatus()), "text/html", "<html><body><h1>"+r.Detail+"</h1></body></html>\n")
		if r.Allow != nil {
			an.Set("Allow", strings.Join(r.Allow, ", "))
		}
		sim.RetryAfter(x, &an, r)
		return an
	}
	e := exception{code, r.Field, r.Detail}
	if r.Operations != nil {
		e.locator = "request"
		e.text += "; at / this simulator has: GetCapabilities, DescribeFeatureType, GetFeature, and by POST GetFeature and Transaction"
	}
	an := report(read(x).speaks(), e)
	an.Status = r.StatusOr(r.Kind.DefaultStatus())
	if r.Kind == sim.Unknown {
		an.Status = 400
	}
	return an
}

// envelope is a failure that says nothing, with 200.
func envelope(x *sim.Exchange) sim.Answer {
	return report(read(x).speaks(), exception{code: "NoApplicableCode", text: "java.lang.NullPointerException"})
}
