package gcs

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

const (
	piece    = 256 << 10          // what a resumable upload keeps is a multiple of it
	lifetime = 7 * 24 * time.Hour // of a session
)

// upload is one session of a resumable upload
// (cloud.google.com/storage/docs/performing-resumable-uploads).
type upload struct {
	id, bucket, name string
	fields           resource
	conditions       conditions
	begun            time.Time
	data             []byte
	done             *object // after the last byte
}

func uploads(x *sim.Exchange) *sim.Table[*upload] { return sim.Rows[*upload](x, "uploads") }

// beginUpload opens a session. Its address is in Location.
func beginUpload(x *sim.Exchange, b *bucket) sim.Answer {
	fields := resource{}
	if len(x.Body) > 0 {
		if err := x.Decode(&fields); err != nil {
			return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
		}
	}
	if kind := x.Request.Header.Get("X-Upload-Content-Type"); kind != "" && fields["contentType"] == nil {
		fields["contentType"] = kind
	}
	u := &upload{id: x.ID("up"), bucket: b.name, name: objectName(x, fields), fields: fields,
		conditions: conditionsOf(x, "if"), begun: x.Now()}
	if bad := b.may(x, u.name, u.conditions); bad != nil {
		return x.Refuse(*bad)
	}
	uploads(x).Put(u.id, u)
	query := url.Values{"uploadType": {"resumable"}, "upload_id": {u.id}}
	if p := x.Query("projection"); p != "" {
		query.Set("projection", p)
	}
	return sim.Answer{Status: 200, Fields: [][2]string{
		{"Location", x.URL("/upload/storage/v1/b/"+b.name+"/o") + "?" + query.Encode()},
		{"X-Guploader-Uploadid", u.id}, {"Content-Type", "text/plain; charset=utf-8"},
	}}
}

// findUpload returns the session that x continues.
func findUpload(x *sim.Exchange) (*upload, *sim.Refusal) {
	u, ok := uploads(x).Get(x.Query("upload_id"))
	switch {
	case !ok:
		return nil, missing("upload")
	case x.Now().Sub(u.begun) >= lifetime:
		return nil, lost("The upload began more than a week ago; begin another.")
	}
	return u, nil
}

// chunk is what a Content-Range says of a request: bytes from up to to of
// total. -1 stands for what it does not say.
type chunk struct{ from, to, total int }

// chunkOf reads the Content-Range of x: bytes 0-9/10, bytes 0-9/*, bytes */10
// or bytes */*. Without one the body is all that is still to come.
func chunkOf(x *sim.Exchange, have int) (c chunk, ok bool) {
	header := x.Request.Header.Get("Content-Range")
	if header == "" {
		return chunk{have, have + len(x.Body), have + len(x.Body)}, true
	}
	text, ok := strings.CutPrefix(header, "bytes ")
	span, total, cut := strings.Cut(text, "/")
	if !ok || !cut {
		return c, false
	}
	c = chunk{-1, -1, -1}
	if total != "*" {
		if c.total, ok = natural(total); !ok {
			return c, false
		}
	}
	if span == "*" {
		return c, len(x.Body) == 0
	}
	first, last, _ := strings.Cut(span, "-")
	from, ok1 := natural(first)
	end, ok2 := natural(last)
	c.from, c.to = from, end+1
	return c, ok1 && ok2 && c.to-c.from == len(x.Body) && (c.total < 0 || c.to <= c.total)
}

func natural(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && !strings.HasPrefix(text, "+") && n < 1<<50
}

// final tells whether the object is whole after the chunk.
func (c chunk) final(have int) bool { return c.total >= 0 && max(c.to, have) == c.total }

// continueUpload takes the next bytes of a session, or tells how far it is.
// Bytes that are there already are not taken twice.
func continueUpload(x *sim.Exchange) sim.Answer {
	u, bad := findUpload(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	if u.done != nil {
		return u.done.answer(x)
	}
	c, ok := chunkOf(x, len(u.data))
	switch {
	case !ok:
		return x.Refuse(*invalid("Content-Range", "Invalid Content-Range; it must fit the body."))
	case c.from > len(u.data):
		return x.Refuse(*invalid("Content-Range", fmt.Sprintf("Invalid Content-Range: bytes %d to %d have not come.", len(u.data), c.from-1)))
	}
	if bad := u.take(x, c, c.to); bad != nil {
		return x.Refuse(*bad)
	}
	if !c.final(len(u.data)) {
		return u.incomplete(x)
	}
	return u.finish(x)
}

// take keeps the bytes of the chunk up to end, whole pieces only unless they
// are the last.
func (u *upload) take(x *sim.Exchange, c chunk, end int) *sim.Refusal {
	if end < c.total || c.total < 0 {
		end -= end % piece
	}
	if c.from < 0 || end <= len(u.data) {
		return nil
	}
	more := x.Body[len(u.data)-c.from : end-c.from]
	if bad := stored(x).room(len(more)); bad != nil {
		return bad
	}
	u.data = append(u.data, more...)
	return nil
}

// incomplete tells how much there is. A client that cannot bear 308 for
// anything but a redirect gets it in a header.
func (u *upload) incomplete(x *sim.Exchange) sim.Answer {
	an := sim.Answer{Status: http.StatusPermanentRedirect, Fields: [][2]string{{"X-Guploader-Uploadid", u.id}}}
	if x.Request.Header.Get("X-Guploader-No-308") == "yes" {
		an.Status = http.StatusOK
		an.Set("X-Http-Status-Code-Override", "308")
	}
	if n := len(u.data); n > 0 {
		an.Set("Range", fmt.Sprintf("bytes=0-%d", n-1))
	}
	return an
}

// finish makes the object. A session whose object cannot be made is at its
// end too.
func (u *upload) finish(x *sim.Exchange) sim.Answer {
	stored(x).bytes -= len(u.data) // it is counted as an object from here on
	b, ok := buckets(x).Get(u.bucket)
	if !ok {
		uploads(x).Delete(u.id)
		return x.Refuse(*missing("bucket"))
	}
	an := insert(x, b, *u)
	if an.Status != 200 {
		uploads(x).Delete(u.id)
		return an
	}
	u.done, u.data, u.fields = b.objects[u.name], nil, nil
	return an
}
