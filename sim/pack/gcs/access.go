package gcs

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/heedproject/heed/sim"
)

// access is an access list: who may do what, in the order it was granted.
type access []grant

type grant struct {
	Entity string `json:"entity"`
	Role   string `json:"role"`
}

// everybody, and everybody with a Google account.
const (
	anyone  = "allUsers"
	account = "allAuthenticatedUsers"
)

// parties are those whom a canned list names: the owner of an object, "" for
// that of a bucket, and the project.
type parties struct{ owner, project string }

// predefined returns the list that a canned name stands for
// (cloud.google.com/storage/docs/access-control/lists#predefined-acl), with
// the owner first; "" is the one without a name.
func (p parties) predefined(field, name string) (access, *sim.Refusal) {
	n := projectNumber(p.project)
	team := access{{"project-owners-" + n, "OWNER"}, {"project-editors-" + n, "OWNER"}, {"project-viewers-" + n, "READER"}}
	mine := access{}
	if p.owner != "" {
		mine = access{{p.owner, "OWNER"}}
	} else if name != "" && name != "projectPrivate" {
		mine = team[:1:1]
	}
	switch name {
	case "", "projectPrivate":
		return append(mine, team...), nil
	case "private":
		return mine, nil
	case "publicRead":
		return append(mine, grant{anyone, "READER"}), nil
	case "authenticatedRead":
		return append(mine, grant{account, "READER"}), nil
	case "publicReadWrite":
		if p.owner == "" {
			return append(mine, grant{anyone, "WRITER"}), nil
		}
	case "bucketOwnerFullControl":
		return mine.set(team[0]), nil
	case "bucketOwnerRead":
		return mine.set(grant{team[0].Entity, "READER"}), nil
	}
	return nil, invalid(field, "Invalid value for "+field+": '"+name+"'")
}

// decodeAccess reads the list in a resource that a client sent; ok is false
// where there is none.
func decodeAccess(v any) (list access, ok bool, bad *sim.Refusal) {
	if v == nil {
		return nil, false, nil
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, false, invalid("acl", "Invalid access control list.")
	}
	for _, g := range list {
		if r := g.check(); r != nil {
			return nil, false, r
		}
	}
	return list, true, nil
}

// choose replaces the list by the canned one that the query parameter names,
// or else by the one that was sent; without either it stays.
func (a *access) choose(x *sim.Exchange, p parties, parameter string, sent any) *sim.Refusal {
	if name := x.Query(parameter); name != "" {
		list, bad := p.predefined(parameter, name)
		if bad == nil {
			*a = list
		}
		return bad
	}
	list, ok, bad := decodeAccess(sent)
	if ok {
		*a = list
	}
	return bad
}

func (g grant) check() *sim.Refusal {
	switch {
	case g.Entity == "":
		return invalid("entity", "Required parameter: entity")
	case g.Role != "OWNER" && g.Role != "READER" && g.Role != "WRITER":
		return invalid("role", "Invalid value for role: '"+g.Role+"'; give OWNER, WRITER or READER.")
	}
	return nil
}

func (a access) find(entity string) int {
	return slices.IndexFunc(a, func(g grant) bool { return g.Entity == entity })
}

// set returns the list with the grant in the place of an older one.
func (a access) set(g grant) access {
	list := slices.Clone(a)
	if i := list.find(g.Entity); i >= 0 {
		list[i] = g
		return list
	}
	return append(list, g)
}

// holder is what an access list belongs to.
type holder struct {
	list    *access
	kind    string // of one entry
	path    string // of the list
	about   resource
	number  int64 // of the state, for the etag
	changed func()
}

func (b *bucket) list() holder {
	return holder{list: &b.access, kind: "storage#bucketAccessControl", path: "b/" + b.name + "/acl",
		about: resource{"bucket": b.name}, number: b.metageneration}
}

func (b *bucket) defaultList() holder {
	return holder{list: &b.defaults, kind: "storage#objectAccessControl", path: "b/" + b.name + "/defaultObjectAcl",
		about: resource{}, number: b.metageneration}
}

// told is the list as a client reads it.
func (a access) told(x *sim.Exchange, h holder) []resource {
	items := make([]resource, len(a))
	for i, g := range a {
		items[i] = h.told(x, g)
	}
	return items
}

func (h holder) told(x *sim.Exchange, g grant) resource {
	r := resource{"kind": h.kind, "entity": g.Entity, "role": g.Role, "etag": etag(h.number)}
	maps.Copy(r, h.about)
	if len(h.about) > 0 { // an entry of a default list is nobody's yet
		r["id"], r["selfLink"] = h.path+"/"+g.Entity, link(x, h.path+"/"+g.Entity)
	}
	return r
}

// bucketAccess, defaultAccess and objectAccess find the list that x is about
// and the entity that its path names.
func bucketAccess(x *sim.Exchange) (h holder, entity string, bad *sim.Refusal) {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return h, "", bad
	}
	h = b.list()
	h.changed = func() { b.changed(x) }
	return h, x.Value("entity"), nil
}

func defaultAccess(x *sim.Exchange) (h holder, entity string, bad *sim.Refusal) {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return h, "", bad
	}
	h = b.defaultList()
	h.changed = func() { b.changed(x) }
	return h, x.Value("entity"), nil
}

func objectAccess(x *sim.Exchange) (h holder, entity string, bad *sim.Refusal) {
	path := objectPath(x)
	o, bad := findObject(x, x.Value("bucket"), path[0], conditionsOf(x, "if"))
	if bad != nil {
		return h, "", bad
	}
	h = o.accessList()
	h.changed = func() { o.changed(x) }
	if len(path) > 2 {
		entity = path[2]
	}
	return h, entity, nil
}

// finder finds an access list.
type finder func(*sim.Exchange) (h holder, entity string, bad *sim.Refusal)

// accessOperations are the six operations of one kind of list. Shape is that
// of an object's path, "" where the route says all.
func accessOperations(name, route, shape string, find finder) []sim.Operation {
	all, one := route, route+"/{entity}"
	var isAll, isOne func(*sim.Exchange) bool
	if shape != "" {
		one, isAll, isOne = route, shaped(shape), shaped(shape+"/{entity}")
	}
	return []sim.Operation{
		{Name: name + ".list", Route: "GET " + all, When: isAll, Do: find.all},
		{Name: name + ".insert", Route: "POST " + all, When: isAll, Do: find.insert},
		{Name: name + ".get", Route: "GET " + one, When: isOne, Do: find.get},
		{Name: name + ".patch", Route: "PATCH " + one, When: isOne, Do: find.change},
		{Name: name + ".update", Route: "PUT " + one, When: isOne, Do: find.change},
		{Name: name + ".delete", Route: "DELETE " + one, When: isOne, Do: find.delete},
	}
}

func (find finder) all(x *sim.Exchange) sim.Answer {
	h, _, bad := find(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	return listed(h.kind+"s", h.list.told(x, h), "")
}

func (find finder) get(x *sim.Exchange) sim.Answer {
	h, entity, bad := find(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	i := h.list.find(entity)
	if i < 0 {
		return x.Refuse(*missing("access control entry"))
	}
	return sim.JSON(200, h.told(x, (*h.list)[i]))
}

func (find finder) insert(x *sim.Exchange) sim.Answer { return find.grant(x, "") }

// change sets the role of an entity, which an update may also add.
func (find finder) change(x *sim.Exchange) sim.Answer {
	h, entity, bad := find(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	if x.Request.Method == http.MethodPatch && h.list.find(entity) < 0 {
		return x.Refuse(*missing("access control entry"))
	}
	return find.grant(x, entity)
}

// grant adds or replaces an entry; without an entity the one that was sent.
func (find finder) grant(x *sim.Exchange, entity string) sim.Answer {
	h, _, bad := find(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	var g grant
	if err := x.Decode(&g); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	if entity != "" {
		g.Entity = entity
	}
	if r := g.check(); r != nil {
		return x.Refuse(*r)
	}
	*h.list = h.list.set(g)
	h.changed()
	x.Effect("grant", h.path+"/"+g.Entity, 0)
	return sim.JSON(200, h.told(x, g))
}

func (find finder) delete(x *sim.Exchange) sim.Answer {
	h, entity, bad := find(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	i := h.list.find(entity)
	if i < 0 {
		return x.Refuse(*missing("access control entry"))
	}
	*h.list = slices.Delete(slices.Clone(*h.list), i, i+1)
	h.changed()
	return sim.Answer{Status: http.StatusNoContent}
}
