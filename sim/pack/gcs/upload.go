package gcs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/heedproject/heed/sim"
)

// insertObject uploads in one piece, in two parts, or begins a resumable
// upload (cloud.google.com/storage/docs/uploads-downloads).
func insertObject(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	switch kind := x.Query("uploadType"); kind {
	case "media":
		fields := resource{"contentType": x.Request.Header.Get("Content-Type")}
		if fields["contentType"] == "" {
			fields = resource{}
		}
		return insertWhole(x, b, fields, x.Body)
	case "multipart":
		fields, data, err := parts(x)
		if err != nil {
			return x.Refuse(*invalid("", "Malformed multipart body: "+err.Error()))
		}
		return insertWhole(x, b, fields, data)
	case "resumable":
		return beginUpload(x, b)
	default:
		return x.Refuse(*invalid("uploadType", "Invalid value for uploadType: '"+kind+"'; give media, multipart or resumable."))
	}
}

// insertWhole keeps an object that came in one request.
func insertWhole(x *sim.Exchange, b *bucket, fields resource, data []byte) sim.Answer {
	return insert(x, b, upload{name: objectName(x, fields), fields: fields, conditions: conditionsOf(x, "if"), data: data})
}

// insert keeps an object that has come in whole.
func insert(x *sim.Exchange, b *bucket, u upload) sim.Answer {
	if bad := b.may(x, u.name, u.conditions); bad != nil {
		return x.Refuse(*bad)
	}
	c := newContent(u.data)
	if bad := c.checkSent(u.fields, x.Request.Header.Get("X-Goog-Hash")); bad != nil {
		return x.Refuse(*bad)
	}
	return b.put(x, &object{name: u.name, content: c, fields: u.fields})
}

// objectName is the name in the query, or else in the metadata.
func objectName(x *sim.Exchange, fields resource) string {
	if name := x.Query("name"); name != "" {
		return name
	}
	name, _ := fields["name"].(string)
	return name
}

// parts reads a multipart/related body: the metadata, then the contents.
func parts(x *sim.Exchange) (fields resource, data []byte, err error) {
	media, parameters, err := mime.ParseMediaType(x.Request.Header.Get("Content-Type"))
	if err != nil {
		return nil, nil, err
	}
	if media != "multipart/related" || parameters["boundary"] == "" {
		return nil, nil, errors.New("the Content-Type must be multipart/related with a boundary")
	}
	r := multipart.NewReader(bytes.NewReader(x.Body), parameters["boundary"])
	metadata, err := r.NextRawPart()
	if err == nil {
		err = json.NewDecoder(metadata).Decode(&fields)
	}
	if err != nil {
		return nil, nil, errors.Join(errors.New("the first part must be the metadata in JSON"), err)
	}
	contents, err := r.NextRawPart()
	if err == nil {
		data, err = io.ReadAll(contents)
	}
	if err != nil {
		return nil, nil, errors.Join(errors.New("the second part must be the contents"), err)
	}
	if fields == nil {
		fields = resource{}
	}
	if kind := contents.Header.Get("Content-Type"); kind != "" && fields["contentType"] == nil {
		fields["contentType"] = kind
	}
	return fields, data, nil
}

// statusCancelled is what Google Storage answers when an upload was given up
// (resumable-uploads#cancel-upload); HTTP has no such status.
const statusCancelled = 499

func cancelUpload(x *sim.Exchange) sim.Answer {
	u, bad := findUpload(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	uploads(x).Delete(u.id)
	if u.done == nil {
		stored(x).bytes -= len(u.data)
	}
	return sim.Answer{Status: statusCancelled, Fields: [][2]string{{"Content-Length", "0"}}}
}

func lost(detail string) *sim.Refusal {
	return &sim.Refusal{Kind: sim.NotFound, Status: http.StatusGone, Field: "upload_id", Detail: detail}
}
