package gcs

import (
	"maps"
	"slices"
	"strconv"

	"github.com/heedproject/heed/sim"
)

// rewriteObject copies an object, in one go: no copy here is so large that it
// would need a second call.
func rewriteObject(x *sim.Exchange) sim.Answer {
	o, an := duplicate(x)
	if o == nil {
		return an
	}
	size := strconv.Itoa(len(o.content.data))
	return sim.JSON(200, resource{
		"kind": "storage#rewriteResponse", "done": true, "objectSize": size, "totalBytesRewritten": size,
		"resource": o.resource(x, x.Query("projection") == "full"),
	})
}

func copyObject(x *sim.Exchange) sim.Answer {
	_, an := duplicate(x)
	return an
}

// duplicate makes the copy; where it cannot, o is nil and an says why.
func duplicate(x *sim.Exchange) (o *object, an sim.Answer) {
	path := objectPath(x) // name, verb, "b", bucket, "o", name
	source, bad := findSource(x, x.Value("bucket"), path[0], x.Query("sourceGeneration"))
	if bad != nil {
		return nil, x.Refuse(*bad)
	}
	b, ok := buckets(x).Get(path[3])
	if !ok {
		return nil, x.Refuse(*missing("bucket"))
	}
	if bad := b.may(x, path[5], conditionsOf(x, "if")); bad != nil {
		return nil, x.Refuse(*bad)
	}
	fields := maps.Clone(source.fields)
	if len(x.Body) > 0 {
		var sent resource
		if err := x.Decode(&sent); err != nil {
			return nil, x.Refuse(*invalid("", "Parse Error: "+err.Error()))
		}
		if len(sent) > 0 { // what is sent replaces the metadata of the source
			fields = sent
		}
	}
	twin := *source.content
	made := &object{name: path[5], content: &twin, parts: source.parts, fields: fields}
	if an = b.put(x, made); an.Status != 200 {
		return nil, an
	}
	return made, an
}

// findSource finds what is copied from.
func findSource(x *sim.Exchange, in, name, generation string) (*object, *sim.Refusal) {
	b, ok := buckets(x).Get(in)
	if !ok {
		return nil, missing("bucket")
	}
	o := b.objects[name]
	if o == nil || generation != "" && generation != strconv.FormatInt(o.generation, 10) {
		return nil, missing("source object")
	}
	c := conditionsOf(x, "ifSource")
	return o, c.check(x, o.generation, o.metageneration)
}

const maxSources = 32 // of one compose

// composeObject joins objects of one bucket.
func composeObject(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	var sent struct {
		SourceObjects []struct {
			Name                string
			Generation          int64 `json:",string"`
			ObjectPreconditions struct {
				IfGenerationMatch int64 `json:",string"`
			}
		}
		Destination resource
	}
	if err := x.Decode(&sent); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	if n := len(sent.SourceObjects); n == 0 || n > maxSources {
		return x.Refuse(*invalid("sourceObjects", "Give 1 to 32 source objects."))
	}
	name := objectPath(x)[0]
	if bad := b.may(x, name, conditionsOf(x, "if")); bad != nil {
		return x.Refuse(*bad)
	}
	var all [][]byte
	parts := 0
	for _, s := range sent.SourceObjects {
		o := b.objects[s.Name]
		if o == nil || s.Generation != 0 && s.Generation != o.generation {
			return x.Refuse(*missing("source object"))
		}
		if want := s.ObjectPreconditions.IfGenerationMatch; want != 0 && want != o.generation {
			return x.Refuse(*unmet(412, "ifGenerationMatch"))
		}
		all = append(all, o.content.data)
		parts += max(o.parts, 1)
	}
	if sent.Destination == nil {
		sent.Destination = resource{}
	}
	return b.put(x, &object{name: name, content: newContent(slices.Concat(all...)), parts: parts, fields: sent.Destination})
}
