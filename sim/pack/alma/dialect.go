package alma

import (
	"encoding/xml"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// asJSON tells whether the request wants JSON; the API's own choice is XML.
func asJSON(x *sim.Exchange) bool {
	if f := x.Query("format"); f != "" {
		return f == "json"
	}
	return strings.Contains(x.Request.Header.Get("Accept"), "json")
}

// done writes v, in whose tags both forms are.
func done(x *sim.Exchange, v any) sim.Answer { return write(x, 200, v) }

func write(x *sim.Exchange, status int, v any) sim.Answer {
	if asJSON(x) {
		return sim.JSON(status, v).With("Content-Type", "application/json;charset=UTF-8")
	}
	body, err := xml.Marshal(v)
	if err != nil {
		return sim.Text(500, "text/plain", "the answer cannot be written: "+err.Error())
	}
	return sim.Text(status, "application/xml;charset=UTF-8", xml.Header+string(body))
}

// take reads the body into v, as JSON or, by its media type, as XML.
func take(x *sim.Exchange, v any) bool {
	if strings.Contains(x.Request.Header.Get("Content-Type"), "xml") {
		return xml.Unmarshal(x.Body, v) == nil
	}
	return x.Decode(v) == nil
}

// result is an error as Alma writes it.
type result struct {
	XMLName struct{}  `json:"-" xml:"http://com/exlibris/urm/general/xmlbeans web_service_result"`
	Exists  bool      `json:"errorsExist" xml:"errorsExist"`
	List    errorList `json:"errorList" xml:"errorList"`
	Result  *string   `json:"result" xml:"result"`
}

type errorList struct {
	Errors []oneError `json:"error" xml:"error"`
}

type oneError struct {
	Code    string `json:"errorCode" xml:"errorCode"`
	Message string `json:"errorMessage" xml:"errorMessage"`
	Track   string `json:"trackingId,omitempty" xml:"trackingId,omitempty"`
}

func failed(x *sim.Exchange, status int, code, message string) sim.Answer {
	return write(x, status, result{Exists: true, List: errorList{[]oneError{{code, message, x.ID("E01-")}}}})
}

// wrong is an error of a business kind.
func wrong(x *sim.Exchange, code, message string) sim.Answer { return failed(x, 400, code, message) }

// word is the code of a kind, and its status.
type word struct {
	code   string
	status int
}

var words = [...]word{
	sim.BadRequest:   {"401664", 400},
	sim.Unauthorized: {"UNAUTHORIZED", 401},
	sim.Forbidden:    {"FORBIDDEN", 403},
	sim.NotFound:     {"402203", 400},
	sim.Conflict:     {"401652", 400},
	sim.Throttled:    {perSecond, 429},
	sim.Banned:       {"FORBIDDEN", 403},
	sim.Failed:       {"INTERNAL_SERVER_ERROR", 500},
	sim.Overloaded:   {"ROUTING_ERROR", 503},
	sim.Unknown:      {"INVALID_REQUEST", 400},
	sim.WrongMethod:  {"INVALID_REQUEST", 405},
	sim.TooLarge:     {"INVALID_REQUEST", 413},
	sim.KeyMismatch:  {"INVALID_REQUEST", 400},
	sim.KeyInFlight:  {"INVALID_REQUEST", 409},
	sim.KeyTooLong:   {"INVALID_REQUEST", 400},
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	w := words[r.Kind]
	switch {
	case r.Kind != sim.Throttled:
	case r.Limit != nil && r.Limit.Kind == rate.Daily:
		w.code, r.Detail = daily, "Daily API Request Threshold has been reached."
	default:
		r.Detail = "HTTP requests are more than allowed per second."
	}
	if r.Operations != nil {
		r.Detail += "; this simulator has: " + strings.Join(r.Operations, ", ")
	}
	an := failed(x, r.StatusOr(w.status), w.code, r.Detail)
	if r.Allow != nil {
		an.Set("Allow", strings.Join(r.Allow, ", "))
	}
	return an
}

// quota tells what is left of the day, and nothing of the second.
func quota(an *sim.Answer, told []rate.Told) {
	for _, t := range told {
		if t.Limit.Kind == rate.Daily {
			an.Set("X-Exl-Api-Remaining", strconv.Itoa(int(t.Remaining)))
			an.Set("X-Exl-Api-Quota", strconv.Itoa(int(t.Capacity)))
		}
	}
}

// envelope is an error with the status of an answer.
func envelope(x *sim.Exchange) sim.Answer {
	return failed(x, 200, "INTERNAL_SERVER_ERROR", "The web server encountered an unexpected condition.")
}
