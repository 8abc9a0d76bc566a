package gcs

import (
	"encoding/base64"
	"strconv"

	"github.com/heedproject/heed/sim"
)

const maxPage = 1000 // the most that a list returns at once

// page cuts a sorted list of names to what maxResults and pageToken ask for.
// next is the token of the rest, "" at the end.
func page(x *sim.Exchange, names []string) (cut []string, next string, bad *sim.Refusal) {
	size := maxPage
	if text := x.Query("maxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, "", invalid("maxResults", "Invalid value for maxResults: give a number from 1 up.")
		}
		size = min(n, maxPage)
	}
	if token := x.Query("pageToken"); token != "" {
		after, err := base64.URLEncoding.DecodeString(token)
		if err != nil {
			return nil, "", invalid("pageToken", "Invalid value for pageToken: give one that a list returned.")
		}
		for len(names) > 0 && names[0] <= string(after) {
			names = names[1:]
		}
	}
	if len(names) <= size {
		return names, "", nil
	}
	return names[:size], base64.URLEncoding.EncodeToString([]byte(names[size-1])), nil
}
