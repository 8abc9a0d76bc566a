package nominatim

import (
	"encoding/xml"
	"strings"

	"github.com/heedproject/heed/sim"
)

// fault is an error of the server's own.
type fault struct {
	XMLName struct{} `json:"-" xml:"error"`
	Code    int      `json:"code" xml:"code"`
	Message string   `json:"message" xml:"message"`
}

// failed writes it in the format that was asked for.
func failed(x *sim.Exchange, code int, message string) sim.Answer {
	f := fault{Code: code, Message: message}
	if format(x) == "xml" {
		return document(code, f)
	}
	return sim.JSON(code, struct {
		Error fault `json:"error"`
	}{f}).With("Content-Type", "application/json; charset=utf-8")
}

func document(status int, v any) sim.Answer {
	body, err := xml.Marshal(v)
	if err != nil {
		return sim.Text(500, "text/plain", "the answer cannot be written: "+err.Error())
	}
	return sim.Text(status, "text/xml; charset=utf-8", xml.Header+string(body))
}

// refuse writes what the server says in its format, an outage in plain text,
// and what is said in front of it, to those who ask too much, in HTML.
func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	code := r.StatusOr(r.Kind.DefaultStatus())
	page := func(title string) sim.Answer {
		return sim.Text(code, "text/html", "<html><head><title>"+title+"</title></head><body><h1>"+title+"</h1><p>"+r.Detail+"</p></body></html>\n")
	}
	switch r.Kind {
	case sim.Throttled:
		r.Detail = "The usage policy allows one request a second."
		return page("Too many requests")
	case sim.Banned:
		r.Detail = "You have violated the usage policy."
		return page("Access blocked")
	case sim.Forbidden:
		return page("Access blocked")
	case sim.Overloaded:
		return sim.Text(code, "text/plain", "Search temporarily unavailable")
	}
	if r.Operations != nil {
		r.Detail += "; this simulator has: " + strings.Join(r.Operations, ", ")
	}
	an := failed(x, code, r.Detail)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	return an
}

// nothing is the answer of reverse where no place is near: an error by its
// name, and yet an empty result.
func nothing(x *sim.Exchange) sim.Answer {
	const word = "Unable to geocode"
	if format(x) == "xml" {
		return document(200, struct {
			XMLName struct{} `xml:"reversegeocode"`
			Error   string   `xml:"error"`
		}{Error: word})
	}
	return sim.JSON(200, struct {
		Error string `json:"error"`
	}{word}).With("Content-Type", "application/json; charset=utf-8")
}

func envelope(x *sim.Exchange) sim.Answer { return nothing(x) }
