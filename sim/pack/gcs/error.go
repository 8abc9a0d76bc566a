package gcs

import (
	"encoding/xml"
	"net/http"
	"strings"

	"github.com/heedproject/heed/sim"
)

// word is how Google Storage names a kind of error: the reason and its domain
// in JSON, the code in XML.
type word struct {
	reason, domain, code string
	status               int
}

// words are those of cloud.google.com/storage/docs/json_api/v1/status-codes
// and xml-api/reference-status.
var words = map[sim.Kind]word{
	sim.BadRequest:   {"invalid", "global", "InvalidArgument", 400},
	sim.Unauthorized: {"authError", "global", "AuthenticationRequired", 401},
	sim.Forbidden:    {"forbidden", "global", "AccessDenied", 403},
	sim.NotFound:     {"notFound", "global", "NoSuchKey", 404},
	sim.Conflict:     {"conflict", "global", "BucketNameUnavailable", 409},
	sim.Throttled:    {"rateLimitExceeded", "usageLimits", "SlowDown", 429},
	sim.Banned:       {"quotaExceeded", "usageLimits", "AccessDenied", 403},
	sim.Failed:       {"internalError", "global", "InternalError", 500},
	sim.Overloaded:   {"backendError", "global", "ServiceUnavailable", 503},
	sim.Unknown:      {"notFound", "global", "NoSuchBucket", 404},
	sim.WrongMethod:  {"methodNotAllowed", "global", "MethodNotAllowed", 405},
	sim.TooLarge:     {"uploadTooLarge", "global", "EntityTooLarge", 413},
	sim.KeyMismatch:  {"invalid", "global", "InvalidArgument", 400},
	sim.KeyInFlight:  {"conflict", "global", "InvalidArgument", 409},
	sim.KeyTooLong:   {"invalid", "global", "InvalidArgument", 400},
}

// statuses name what has no kind of its own.
var statuses = map[int]word{
	http.StatusRequestTimeout:               {"uploadBrokenConnection", "global", "RequestTimeout", 408},
	http.StatusGone:                         {"gone", "global", "UploadGone", 410},
	http.StatusPreconditionFailed:           {"conditionNotMet", "global", "PreconditionFailed", 412},
	http.StatusRequestedRangeNotSatisfiable: {"requestedRangeNotSatisfiable", "global", "InvalidRange", 416},
	http.StatusNotImplemented:               {"notImplemented", "global", "NotImplemented", 501},
	http.StatusBadGateway:                   {"backendError", "global", "BadGateway", 502},
	http.StatusGatewayTimeout:               {"backendError", "global", "GatewayTimeout", 504},
	http.StatusInsufficientStorage:          {"insufficientStorage", "global", "InsufficientStorage", 507},
}

type cause struct {
	Domain       string `json:"domain"`
	Location     string `json:"location,omitempty"`
	LocationType string `json:"locationType,omitempty"`
	Message      string `json:"message"`
	Reason       string `json:"reason"`
}

type fault struct {
	Code    int     `json:"code"`
	Message string  `json:"message"`
	Errors  []cause `json:"errors"`
}

func refuse(x *sim.Exchange, r sim.Refusal) sim.Answer {
	w := words[r.Kind]
	status := r.StatusOr(w.status)
	if other, ok := statuses[status]; ok && status != w.status {
		w = other
	}
	if r.Operations != nil {
		r.Detail += ". This simulator has: " + strings.Join(r.Operations, ", ")
	}
	if isXML(x) {
		return refuseXML(status, w.code, r.Detail)
	}
	c := cause{Domain: w.domain, Message: r.Detail, Reason: w.reason}
	if r.Field != "" {
		c.Location, c.LocationType = r.Field, "parameter"
	}
	an := sim.JSON(status, struct {
		Error fault `json:"error"`
	}{fault{status, r.Detail, []cause{c}}})
	an.Set("Content-Type", "application/json; charset=UTF-8")
	sim.RetryAfter(x, &an, r)
	return an
}

// isXML tells whether x speaks the XML API: all paths that the JSON API does
// not claim.
func isXML(x *sim.Exchange) bool {
	for _, prefix := range []string{"/storage/", "/upload/", "/download/", "/retry_test"} {
		if strings.HasPrefix(x.Path, prefix) {
			return false
		}
	}
	return true
}

func refuseXML(status int, code, message string) sim.Answer {
	body, err := xml.Marshal(struct {
		XMLName struct{} `xml:"Error"`
		Code    string
		Message string
	}{Code: code, Message: message})
	if err != nil { // of two texts there can be none
		body = []byte("<Error/>")
	}
	return sim.Text(status, "application/xml; charset=UTF-8", xml.Header+string(body))
}
