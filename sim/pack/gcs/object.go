package gcs

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// object is one generation of an object, the only one that is kept.
type object struct {
	bucket, name     string
	content          *content
	generation       int64
	metageneration   int64
	created, updated time.Time
	parts            int // how many objects it was composed of, 0 for none
	fields           resource
	access           access
}

// objectOwner is who uploads: everybody is the same user here.
const objectOwner = "user-uploader@simulated.example"

// fixed are the fields of an object that a client does not set.
var fixed = []string{"kind", "id", "selfLink", "mediaLink", "name", "bucket", "generation", "metageneration", "size",
	"md5Hash", "crc32c", "etag", "timeCreated", "updated", "timeStorageClassUpdated", "timeFinalized", "componentCount",
	"owner", "acl"}

// findObject returns an object, if it is there and meets the conditions.
func findObject(x *sim.Exchange, in, name string, c conditions) (*object, *sim.Refusal) {
	b, ok := buckets(x).Get(in)
	if !ok {
		return nil, missing("bucket")
	}
	o := b.objects[name]
	if o == nil {
		if bad := c.check(x, 0, 0); bad != nil {
			return nil, bad
		}
		return nil, missing("object")
	}
	if g := x.Query("generation"); g != "" && g != strconv.FormatInt(o.generation, 10) {
		return nil, missing("generation of the object")
	}
	return o, c.check(x, o.generation, o.metageneration)
}

// pathObject finds the object that the path names first.
func pathObject(x *sim.Exchange) (*object, *sim.Refusal) {
	return findObject(x, x.Value("bucket"), objectPath(x)[0], conditionsOf(x, "if"))
}

// may tells whether an object of this name may be written now.
func (b *bucket) may(x *sim.Exchange, name string, c conditions) *sim.Refusal {
	switch o := b.objects[name]; {
	case name == "" || len(name) > 1024 || strings.ContainsAny(name, "\r\n"):
		return invalid("name", "Invalid object name: give 1 to 1024 bytes without line ends.")
	case o == nil:
		return c.check(x, 0, 0)
	default:
		return c.check(x, o.generation, o.metageneration)
	}
}

// put makes a new generation of the object called name.
func (b *bucket) put(x *sim.Exchange, o *object) sim.Answer {
	o.access = append(access{{objectOwner, "OWNER"}}, b.defaults...)
	parameter := "predefinedAcl"
	if x.Query(parameter) == "" {
		parameter = "destinationPredefinedAcl" // of a copy
	}
	if bad := o.access.choose(x, parties{objectOwner, b.project}, parameter, o.fields["acl"]); bad != nil {
		return x.Refuse(*bad)
	}
	fields := resource{"storageClass": b.fields["storageClass"], "contentType": "application/octet-stream"}
	patch(fields, o.fields, fixed)
	o.fields, o.bucket = fields, b.name
	o.generation, o.metageneration = newGeneration(x), 1
	o.created, o.updated = x.Now(), x.Now()
	if bad := stored(x).keep(o.content); bad != nil {
		return x.Refuse(*bad)
	}
	if old := b.objects[o.name]; old != nil {
		stored(x).drop(old.content)
	}
	b.objects[o.name] = o
	x.Effect("object", b.name+"/"+o.name, int64(len(o.content.data)))
	return o.answer(x)
}

// newGeneration is a time in microseconds, and more than any before.
func newGeneration(x *sim.Exchange) int64 {
	last := sim.Rows[int64](x, "generations")
	n, _ := last.Get("last")
	n = max(n+1, x.Now().UnixMicro())
	last.Put("last", n)
	return n
}

func (o *object) changed(x *sim.Exchange) {
	o.metageneration++
	o.updated = x.Now()
}

func (o *object) accessList() holder {
	return holder{list: &o.access, kind: "storage#objectAccessControl",
		path:  "b/" + o.bucket + "/o/" + escape(o.name) + "/acl",
		about: resource{"bucket": o.bucket, "object": o.name, "generation": strconv.FormatInt(o.generation, 10)}, number: o.metageneration}
}

func (o *object) answer(x *sim.Exchange) sim.Answer {
	return sim.JSON(200, o.resource(x, x.Query("projection") == "full"))
}

// resource is what a client is told of o.
func (o *object) resource(x *sim.Exchange, full bool) resource {
	r := maps.Clone(o.fields)
	generation, path := strconv.FormatInt(o.generation, 10), "b/"+o.bucket+"/o/"+escape(o.name)
	maps.Copy(r, resource{
		"kind": "storage#object", "id": o.bucket + "/" + o.name + "/" + generation, "name": o.name, "bucket": o.bucket,
		"selfLink": link(x, path), "mediaLink": x.URL("/download/storage/v1/"+path) + "?generation=" + generation + "&alt=media",
		"generation": generation, "metageneration": strconv.FormatInt(o.metageneration, 10),
		"size": strconv.Itoa(len(o.content.data)), "crc32c": o.content.crc32c, "md5Hash": o.content.md5, "etag": o.etag(),
		"timeCreated": stamp(o.created), "updated": stamp(o.updated), "timeStorageClassUpdated": stamp(o.created), "timeFinalized": stamp(o.created),
	})
	if o.parts > 0 { // a composite has no MD5
		r["componentCount"] = o.parts
		delete(r, "md5Hash")
	}
	if full {
		r["acl"] = o.access.told(x, o.accessList())
		r["owner"] = resource{"entity": objectOwner}
	}
	return r
}

func (o *object) etag() string { return etag(o.generation + o.metageneration) }

func getObject(x *sim.Exchange) sim.Answer {
	o, bad := pathObject(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	if isMedia(x) {
		return o.media(x)
	}
	return o.answer(x)
}

func patchObject(x *sim.Exchange) sim.Answer { return changeObject(x, false) }

func updateObject(x *sim.Exchange) sim.Answer { return changeObject(x, true) }

// changeObject merges what was sent into the metadata; an update first clears
// what is not sent.
func changeObject(x *sim.Exchange, whole bool) sim.Answer {
	o, bad := pathObject(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	var sent resource
	if err := x.Decode(&sent); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	b, _ := buckets(x).Get(o.bucket)
	if bad := o.access.choose(x, parties{objectOwner, b.project}, "predefinedAcl", sent["acl"]); bad != nil {
		return x.Refuse(*bad)
	}
	fields := resource{"storageClass": o.fields["storageClass"]}
	if !whole {
		fields = maps.Clone(o.fields)
	}
	patch(fields, sent, fixed)
	o.fields = fields
	o.changed(x)
	return o.answer(x)
}

func deleteObject(x *sim.Exchange) sim.Answer {
	o, bad := pathObject(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	b, _ := buckets(x).Get(o.bucket)
	delete(b.objects, o.name)
	stored(x).drop(o.content)
	x.Effect("object delete", o.bucket+"/"+o.name, 0)
	return sim.Answer{Status: http.StatusNoContent}
}

// listObjects lists by prefix, delimiter and offsets. Names that share what
// stands before the delimiter are told as one prefix.
func listObjects(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	for _, name := range []string{"versions", "softDeleted", "matchGlob"} {
		if v := x.Query(name); v != "" && v != "false" {
			return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Status: http.StatusNotImplemented, Field: name,
				Detail: "This simulator cannot list with " + name + "."})
		}
	}
	folded := map[string]bool{} // what is told, and whether it is a prefix
	for name := range b.objects {
		if told, prefix, ok := fold(x, name); ok {
			folded[told] = folded[told] || prefix
		}
	}
	names, next, bad := page(x, slices.Sorted(maps.Keys(folded)))
	if bad != nil {
		return x.Refuse(*bad)
	}
	var prefixes []string
	var items []resource
	for _, name := range names {
		if folded[name] {
			prefixes = append(prefixes, name)
		}
		if o := b.objects[name]; o != nil && (!folded[name] || x.Query("includeTrailingDelimiter") == "true") {
			items = append(items, o.resource(x, x.Query("projection") == "full"))
		}
	}
	return sim.JSON(200, struct {
		Kind          string     `json:"kind"`
		NextPageToken string     `json:"nextPageToken,omitempty"`
		Prefixes      []string   `json:"prefixes,omitempty"`
		Items         []resource `json:"items,omitempty"`
	}{"storage#objects", next, prefixes, items})
}

// fold tells as what a name is listed, if it is.
func fold(x *sim.Exchange, name string) (told string, prefix, ok bool) {
	start, end := x.Query("startOffset"), x.Query("endOffset")
	rest, ok := strings.CutPrefix(name, x.Query("prefix"))
	if !ok || name < start || end != "" && name >= end {
		return "", false, false
	}
	if d := x.Query("delimiter"); d != "" {
		if i := strings.Index(rest, d); i >= 0 {
			return name[:len(name)-len(rest)+i+len(d)], true, true
		}
	}
	return name, false, true
}
