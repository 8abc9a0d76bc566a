package gcs

import (
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// link is the address of a resource of the JSON API, by the way that this
// request came.
func link(x *sim.Exchange, path string) string { return x.URL("/storage/v1/" + path) }

// stamp writes a time as the JSON API does.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// etag changes with the number of the state it stands for.
func etag(n int64) string { return "CL" + strconv.FormatInt(n, 36) + "=" }

// projectNumber is made up from the name of the project.
func projectNumber(project string) string {
	return strconv.FormatUint(100_000_000_000+uint64(crc32.ChecksumIEEE([]byte(project))), 10)
}

// objectPath returns what the route calls path, segment by segment, as it was
// sent: the name of an object may contain slashes, which are sent as %2F.
func objectPath(x *sim.Exchange) []string {
	plain, sent, rest := x.Request.URL.Path, x.Request.URL.EscapedPath(), x.Value("path")
	if before := plain[:len(plain)-len(rest)]; strings.HasPrefix(sent, before) {
		rest = sent[len(before):]
	}
	segments := strings.Split(rest, "/")
	for i, s := range segments {
		if name, err := url.PathUnescape(s); err == nil {
			segments[i] = name
		}
	}
	return segments
}

// shaped is true of requests whose path has this shape behind /o/. {…} stands
// for any one segment.
func shaped(shape string) func(*sim.Exchange) bool {
	want := strings.Split(shape, "/")
	return func(x *sim.Exchange) bool {
		have := objectPath(x)
		if len(have) != len(want) {
			return false
		}
		for i, w := range want {
			if w != have[i] && !strings.HasPrefix(w, "{") || have[i] == "" {
				return false
			}
		}
		return true
	}
}

// escape writes the name of an object as one segment of a path.
func escape(name string) string { return url.PathEscape(name) }
