package gcs

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

// isMedia tells whether the contents are asked for, not the metadata.
func isMedia(x *sim.Exchange) bool {
	return x.Query("alt") == "media" || strings.HasPrefix(x.Path, "/download/") || isXML(x)
}

// media answers with the contents, or the range of them that was asked for.
// They are served as they were stored, also when their encoding is gzip.
func (o *object) media(x *sim.Exchange) sim.Answer {
	size := len(o.content.data)
	from, to, status := byteRange(x.Request.Header.Get("Range"), size)
	if status == http.StatusRequestedRangeNotSatisfiable {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Status: status, Field: "Range",
			Detail: "The requested range cannot be satisfied."}).With("Content-Range", fmt.Sprintf("bytes */%d", size))
	}
	an := sim.Answer{Status: status, Body: o.content.data[from:to]}
	for _, f := range [][2]string{
		{"Content-Type", "contentType"}, {"Content-Encoding", "contentEncoding"}, {"Content-Language", "contentLanguage"},
		{"Content-Disposition", "contentDisposition"}, {"Cache-Control", "cacheControl"}, {"X-Goog-Storage-Class", "storageClass"},
	} {
		if v, _ := o.fields[f[1]].(string); v != "" {
			an.Set(f[0], v)
		}
	}
	hash := "crc32c=" + o.content.crc32c
	if o.parts == 0 {
		hash += ",md5=" + o.content.md5
	}
	an.Fields = append(an.Fields, [][2]string{
		{"Accept-Ranges", "bytes"}, {"Etag", `"` + o.etag() + `"`}, {"Last-Modified", o.updated.UTC().Format(http.TimeFormat)},
		{"X-Goog-Generation", strconv.FormatInt(o.generation, 10)}, {"X-Goog-Hash", hash},
		{"X-Goog-Metageneration", strconv.FormatInt(o.metageneration, 10)},
		{"X-Goog-Stored-Content-Encoding", "identity"}, {"X-Goog-Stored-Content-Length", strconv.Itoa(size)},
	}...)
	custom, _ := o.fields["metadata"].(map[string]any)
	for name, v := range custom {
		an.Set("X-Goog-Meta-"+name, fmt.Sprint(v))
	}
	if status == http.StatusPartialContent {
		an.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, size))
	}
	return an
}

// byteRange reads a Range of one part (RFC 9110 §14.1.2): bytes=0-9, bytes=5-
// or bytes=-3. Any other is as if there were none, which §14.2 allows.
func byteRange(header string, size int) (from, to, status int) {
	text, ok := strings.CutPrefix(header, "bytes=")
	first, last, cut := strings.Cut(text, "-")
	if !ok || !cut || !slices.ContainsFunc([]string{first, last}, func(s string) bool { return s != "" }) {
		return 0, size, http.StatusOK
	}
	a, errA := strconv.Atoi("0" + first)
	b, errB := strconv.Atoi("0" + last)
	switch {
	case errA != nil || errB != nil || first != "" && last != "" && b < a:
		return 0, size, http.StatusOK
	case first == "" && b == 0 || first != "" && a >= size:
		return 0, 0, http.StatusRequestedRangeNotSatisfiable
	case first == "":
		return max(size-b, 0), size, http.StatusPartialContent
	case last == "":
		return a, size, http.StatusPartialContent
	}
	return a, min(b+1, size), http.StatusPartialContent
}

// getXML downloads by the XML API: the bucket is the first word of the path,
// the object all the rest.
func getXML(x *sim.Exchange) sim.Answer {
	if _, ok := buckets(x).Get(x.Value("bucket")); !ok {
		r := sim.Refusal{Kind: sim.Unknown, Detail: "The specified bucket does not exist"}
		for _, o := range operations() {
			r.Operations = append(r.Operations, o.Route)
		}
		return x.Refuse(r)
	}
	o, bad := findObject(x, x.Value("bucket"), x.Value("path"), conditionsOfHeader(x))
	if bad != nil {
		return x.Refuse(*bad)
	}
	return o.media(x)
}
