package wms

import (
	"strings"

	"github.com/heedproject/heed/sim"
)

// exception is what went wrong; many have no code.
type exception struct{ code, text string }

type report struct {
	XMLName   struct{} `xml:"ServiceExceptionReport"`
	Version   string   `xml:"version,attr"`
	Space     string   `xml:"xmlns,attr,omitempty"`
	Exception struct {
		Code string `xml:"code,attr,omitempty"`
		Text string `xml:",chardata"`
	} `xml:"ServiceException"`
}

const dtd = "<!DOCTYPE ServiceExceptionReport SYSTEM \"http://schemas.opengis.net/wms/1.1.1/exception_1_1_1.dtd\">\n"

// failed writes e as the request wants its exceptions.
func failed(x *sim.Exchange, e exception) sim.Answer {
	q := read(x)
	form := strings.ToUpper(q.get("exceptions"))
	switch {
	case strings.HasSuffix(form, "INIMAGE"), form == "" && strings.Contains(q.get("layers"), painted):
		return picture(q, cross)
	case strings.HasSuffix(form, "BLANK"):
		return picture(q, nothing)
	}
	return written(q, e)
}

// written is the report of the version.
func written(q query, e exception) sim.Answer {
	switch version := q.speaks(); version {
	case "1.0.0":
		return document("text/xml", "", struct {
			XMLName struct{} `xml:"WMTException"`
			Version string   `xml:"version,attr"`
			Text    string   `xml:",chardata"`
		}{Version: version, Text: e.text})
	case "1.1.1":
		r := report{Version: version}
		r.Exception.Code, r.Exception.Text = e.code, e.text
		return document("application/vnd.ogc.se_xml", dtd, r)
	default:
		r := report{Version: version, Space: "http://www.opengis.net/ogc"}
		r.Exception.Code, r.Exception.Text = e.code, e.text
		return document("text/xml; charset=UTF-8", "", r)
	}
}

// refuse writes what the server itself says as a report, and all else as the
// HTML of a proxy.
func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	e := exception{text: r.Detail}
	status := r.StatusOr(r.Kind.DefaultStatus())
	switch r.Kind {
	case sim.Unknown:
		status, e.code = 400, "OperationNotSupported"
		e.text += "; at / this simulator has: GetCapabilities, GetMap, GetFeatureInfo"
	case sim.BadRequest:
		e.code = "InvalidParameterValue"
	case sim.Failed, sim.NotFound:
	default:
		an := sim.Text(status, "text/html", "<html><body><h1>"+r.Detail+"</h1></body></html>\n")
		if r.Allow != nil {
			an.Set("Allow", strings.Join(r.Allow, ", "))
		}
		sim.RetryAfter(x, &an, r)
		return an
	}
	an := written(read(x), e)
	an.Status = status
	return an
}

func envelope(x *sim.Exchange) sim.Answer {
	return failed(x, exception{"", "Rendering process failed: timeout"})
}
