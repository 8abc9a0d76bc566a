package sierra

import (
	"encoding/xml"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// fault is an error as Sierra writes it (techdocs.iii.com, errorHandling).
type fault struct {
	XMLName     struct{} `json:"-" xml:"error"`
	Code        int      `json:"code" xml:"code"`
	Specific    int      `json:"specificCode" xml:"specificCode"`
	Status      int      `json:"httpStatus" xml:"httpStatus"`
	Name        string   `json:"name" xml:"name"`
	Description string   `json:"description,omitempty" xml:"description,omitempty"`
}

// failed writes f, as XML where the request accepts that and no JSON.
func failed(x *sim.Exchange, f fault) sim.Answer {
	accept := x.Request.Header.Get("Accept")
	if !strings.Contains(accept, "xml") || strings.Contains(accept, "json") {
		return sim.JSON(f.Status, f).With("Content-Type", "application/json;charset=UTF-8")
	}
	body, err := xml.Marshal(f)
	if err != nil {
		return sim.Text(500, "text/plain", "the error cannot be written")
	}
	return sim.Text(f.Status, "application/xml;charset=UTF-8", xml.Header+string(body))
}

// words are code, name and status of a kind.
var words = [...]fault{
	sim.BadRequest:   {Code: 108, Status: 400, Name: "Invalid parameter"},
	sim.Unauthorized: {Code: 123, Status: 401, Name: "Unauthorized"},
	sim.Forbidden:    {Code: 116, Status: 403, Name: "Forbidden"},
	sim.NotFound:     {Code: 107, Status: 404, Name: "Record not found"},
	sim.Conflict:     {Code: 133, Status: 409, Name: "Several records match"},
	sim.Throttled:    {Code: 109, Status: 500, Name: "Rate exceeded for endpoint"},
	sim.Banned:       {Code: 116, Status: 403, Name: "Forbidden"},
	sim.Failed:       {Code: 111, Status: 500, Name: "Data service"},
	sim.Overloaded:   {Code: 112, Status: 503, Name: "Database access"},
	sim.Unknown:      {Code: 104, Status: 404, Name: "Not implemented"},
	sim.WrongMethod:  {Code: 104, Status: 405, Name: "Not implemented"},
	sim.TooLarge:     {Code: 108, Status: 413, Name: "Invalid parameter"},
	sim.KeyMismatch:  {Code: 108, Status: 400, Name: "Invalid parameter"},
	sim.KeyInFlight:  {Code: 133, Status: 409, Name: "Several records match"},
	sim.KeyTooLong:   {Code: 108, Status: 400, Name: "Invalid parameter"},
}

// refuse writes in Sierra's words what Sierra has words for. A 429, an outage
// and whatever else comes from the proxy in front is HTML.
func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	f := words[r.Kind]
	status := r.StatusOr(f.Status)
	if status == 429 || r.Kind == sim.Overloaded {
		an := sim.Text(status, "text/html", "<html><body><h1>"+r.Detail+"</h1></body></html>\n")
		sim.RetryAfter(x, &an, r)
		return an
	}
	f.Status = status
	switch r.Kind {
	case sim.Throttled: // it comes without
	case sim.Unauthorized:
		f.Description = "invalid_grant"
	default:
		f.Description = r.Detail
	}
	if r.Operations != nil {
		f.Description += "; this simulator has: " + strings.Join(r.Operations, ", ")
	}
	an := failed(x, f)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	return an
}

// quota tells nothing: Sierra has no headers for what is left.
func quota(*sim.Answer, []rate.Told) {}

// envelope is what articles say that Sierra does, and what a layer in between may do.
func envelope(x *sim.Exchange) sim.Answer {
	return sim.Text(200, "application/json;charset=UTF-8", `{"code":"-1"}`)
}
