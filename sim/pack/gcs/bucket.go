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

// resource is a JSON document as a client writes it or reads it.
type resource map[string]any

// bucket holds objects.
type bucket struct {
	name, project    string
	fields           resource // what clients may set, as they set it
	metageneration   int64
	created, updated time.Time
	access           access // its own list
	defaults         access // the list that new objects get
	policy           policy
	notifications    map[string]resource
	notified         int // ids given to notifications
	objects          map[string]*object
}

// given are the fields of a bucket that a client does not set.
var given = []string{"kind", "id", "selfLink", "name", "projectNumber", "metageneration", "generation", "timeCreated",
	"updated", "etag", "owner", "acl", "defaultObjectAcl", "locationType", "satisfiesPZS", "satisfiesPZI"}

func buckets(x *sim.Exchange) *sim.Table[*bucket] { return sim.Rows[*bucket](x, "buckets") }

// findBucket returns the bucket of the path, if it is there and meets the
// conditions.
func findBucket(x *sim.Exchange, c conditions) (*bucket, *sim.Refusal) {
	b, ok := buckets(x).Get(x.Value("bucket"))
	if !ok {
		return nil, missing("bucket")
	}
	return b, c.check(x, 0, b.metageneration)
}

func insertBucket(x *sim.Exchange) sim.Answer {
	var sent resource
	if err := x.Decode(&sent); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	name, _ := sent["name"].(string)
	switch {
	case x.Query("project") == "":
		return x.Refuse(*invalid("project", "Required parameter: project"))
	case !validName(name):
		return x.Refuse(*invalid("name", "Invalid bucket name: '"+name+"'"))
	}
	if _, ok := buckets(x).Get(name); ok {
		return x.Refuse(sim.Refusal{Kind: sim.Conflict, Detail: "Your previous request to create the named bucket succeeded and you already own it."})
	}
	b := &bucket{name: name, project: x.Query("project"), created: x.Now(), metageneration: 1,
		notifications: map[string]resource{}, objects: map[string]*object{}}
	b.updated, b.fields = b.created, resource{"location": "US", "storageClass": "STANDARD"}
	b.access, _ = parties{project: b.project}.predefined("", "")
	b.defaults, b.policy = b.access, newPolicy(b)
	if r := b.merge(x, sent); r != nil {
		return x.Refuse(*r)
	}
	buckets(x).Put(name, b)
	x.Effect("bucket", name, 0)
	return b.answer(x)
}

// validName checks the length and the letters of a bucket's name
// (cloud.google.com/storage/docs/buckets#naming).
func validName(name string) bool {
	const inner, ends = "abcdefghijklmnopqrstuvwxyz0123456789-_.", "abcdefghijklmnopqrstuvwxyz0123456789"
	return len(name) >= 3 && len(name) <= 222 && strings.Trim(name, inner) == "" &&
		strings.ContainsAny(name[:1], ends) && strings.ContainsAny(name[len(name)-1:], ends)
}

// merge takes over what a client sent, as RFC 7396 has it: null takes a field
// away.
func (b *bucket) merge(x *sim.Exchange, sent resource) *sim.Refusal {
	if v, ok := sent["versioning"].(map[string]any); ok && v["enabled"] == true {
		return &sim.Refusal{Kind: sim.BadRequest, Status: http.StatusNotImplemented, Field: "versioning",
			Detail: "This simulator keeps one generation of an object: versioning cannot be enabled."}
	}
	if r := b.access.choose(x, parties{project: b.project}, "predefinedAcl", sent["acl"]); r != nil {
		return r
	}
	if r := b.defaults.choose(x, parties{project: b.project}, "predefinedDefaultObjectAcl", sent["defaultObjectAcl"]); r != nil {
		return r
	}
	patch(b.fields, sent, given)
	return nil
}

// patch merges sent into fields, except for the names in fixed.
func patch(fields, sent resource, fixed []string) {
	for name, v := range sent {
		if slices.Contains(fixed, name) {
			continue
		}
		old, _ := fields[name].(map[string]any)
		switch v := v.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			merged := maps.Clone(old)
			if merged == nil {
				merged = map[string]any{}
			}
			patch(merged, v, nil)
			fields[name] = merged
		default:
			fields[name] = v
		}
	}
}

// changed notes a change of the metadata.
func (b *bucket) changed(x *sim.Exchange) {
	b.metageneration++
	b.updated = x.Now()
}

func (b *bucket) answer(x *sim.Exchange) sim.Answer {
	return sim.JSON(200, b.resource(x, x.Query("projection") == "full"))
}

// resource is what a client is told of b. The access lists belong to the full
// projection.
func (b *bucket) resource(x *sim.Exchange, full bool) resource {
	r := maps.Clone(b.fields)
	maps.Copy(r, resource{
		"kind": "storage#bucket", "id": b.name, "name": b.name, "selfLink": link(x, "b/"+b.name),
		"projectNumber": projectNumber(b.project), "metageneration": strconv.FormatInt(b.metageneration, 10),
		"generation": strconv.FormatInt(b.created.UnixMicro(), 10), "locationType": "multi-region",
		"timeCreated": stamp(b.created), "updated": stamp(b.updated), "etag": etag(b.metageneration),
	})
	if full {
		r["acl"], r["defaultObjectAcl"] = b.access.told(x, b.list()), b.defaults.told(x, b.defaultList())
		r["owner"] = resource{"entity": "project-owners-" + projectNumber(b.project)}
	}
	return r
}

func listBuckets(x *sim.Exchange) sim.Answer {
	project := x.Query("project")
	if project == "" {
		return x.Refuse(*invalid("project", "Required parameter: project"))
	}
	var names []string
	for name, b := range buckets(x).All() {
		if b.project == project && strings.HasPrefix(name, x.Query("prefix")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names, next, bad := page(x, names)
	if bad != nil {
		return x.Refuse(*bad)
	}
	items := make([]resource, len(names))
	for i, name := range names {
		b, _ := buckets(x).Get(name)
		items[i] = b.resource(x, x.Query("projection") == "full")
	}
	return listed("storage#buckets", items, next)
}

// listed is a page of a list.
func listed[T any](kind string, items []T, next string) sim.Answer {
	return sim.JSON(200, struct {
		Kind          string `json:"kind"`
		NextPageToken string `json:"nextPageToken,omitempty"`
		Items         []T    `json:"items,omitempty"`
	}{kind, next, items})
}

func getBucket(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditionsOf(x, "if"))
	if bad != nil {
		return x.Refuse(*bad)
	}
	return b.answer(x)
}

func patchBucket(x *sim.Exchange) sim.Answer { return changeBucket(x, false) }

func updateBucket(x *sim.Exchange) sim.Answer { return changeBucket(x, true) }

// changeBucket merges what was sent into the bucket; an update first clears
// what is not sent.
func changeBucket(x *sim.Exchange, whole bool) sim.Answer {
	b, bad := findBucket(x, conditionsOf(x, "if"))
	if bad != nil {
		return x.Refuse(*bad)
	}
	var sent resource
	if err := x.Decode(&sent); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	next := *b
	next.fields = resource{"location": b.fields["location"], "storageClass": b.fields["storageClass"]}
	if !whole {
		next.fields = maps.Clone(b.fields)
	}
	if r := next.merge(x, sent); r != nil {
		return x.Refuse(*r)
	}
	*b = next
	b.changed(x)
	return b.answer(x)
}

func deleteBucket(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditionsOf(x, "if"))
	if bad != nil {
		return x.Refuse(*bad)
	}
	if len(b.objects) > 0 {
		return x.Refuse(sim.Refusal{Kind: sim.Conflict, Detail: "The bucket you tried to delete is not empty."})
	}
	buckets(x).Delete(b.name)
	x.Effect("bucket delete", b.name, 0)
	return sim.Answer{Status: http.StatusNoContent}
}

// lockRetention locks the retention policy. Like Google's testbench, and
// unlike Google, it makes an empty one where there is none.
func lockRetention(x *sim.Exchange) sim.Answer {
	c := conditionsOf(x, "if")
	if c.bad == nil && c.metageneration == nil {
		c.bad = invalid("ifMetagenerationMatch", "Required parameter: ifMetagenerationMatch")
	}
	b, bad := findBucket(x, c)
	if bad != nil {
		return x.Refuse(*bad)
	}
	patch(b.fields, resource{"retentionPolicy": map[string]any{"isLocked": true, "effectiveTime": stamp(x.Now())}}, nil)
	b.changed(x)
	return b.answer(x)
}
