package folio

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

// doc is a record as its JSON is. One that is kept is never changed.
type doc map[string]any

// lock is what a module answers to a stale _version.
type lock uint8

const (
	unlocked lock = iota
	conflict      // 409
	hidden        // 500, with the state of the database in the text
)

// collection is the storage of one kind of records.
type collection struct {
	table    string // of the database, as errors tell it
	path     string
	list     string // what the array is called
	digit    int    // the ids of this kind begin with it
	required []string
	unique   string
	lock     lock
	make     func(x *sim.Exchange, n int) doc
	begin    func(x *sim.Exchange, c *collection, d doc) // after one was created
}

// The kinds, by the first digits of their ids.
const (
	userDigit = iota + 1
	instanceDigit
	holdingsDigit
	itemDigit
	requestDigit
)

var collections = []collection{
	{table: "users", path: "/users", list: "users", digit: userDigit, required: []string{"username"}, unique: "username", make: makeUser},
	{table: "instance", path: "/instance-storage/instances", list: "instances", digit: instanceDigit,
		required: []string{"title", "source", "instanceTypeId"}, unique: "hrid", lock: conflict, make: makeInstance},
	{table: "holdings_record", path: "/holdings-storage/holdings", list: "holdingsRecords", digit: holdingsDigit,
		required: []string{"instanceId", "permanentLocationId"}, lock: hidden, make: makeHoldings},
	{table: "item", path: "/item-storage/items", list: "items", digit: itemDigit,
		required: []string{"holdingsRecordId", "status", "materialTypeId"}, unique: "barcode", lock: conflict, make: makeItem},
	{table: "request", path: "/circulation/requests", list: "requests", digit: requestDigit,
		required: []string{"requesterId", "itemId", "requestType"}, begin: fill},
}

// uuid is the id of record n of a kind.
func uuid(digit, n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", digit, n) }

func (c *collection) open(x *sim.Exchange) stock.Stock[doc] {
	k := stock.Kind[doc]{
		Name: c.list,
		ID:   func(n int) string { return uuid(c.digit, n) },
		Number: func(id string) int {
			n, _ := strconv.ParseUint(id[strings.LastIndexByte(id, '-')+1:], 16, 31)
			return int(n)
		},
	}
	if c.make != nil {
		k.Made, k.Make = x.World().Records, func(n int) doc {
			d := c.make(x, n)
			d["id"] = uuid(c.digit, n)
			if c.lock != unlocked {
				d["_version"] = 1.0
			}
			return d
		}
	}
	return stock.Open(x, k)
}

func makeUser(x *sim.Exchange, n int) doc {
	given, family := stock.Person(x, n)
	return doc{"username": "reader" + strconv.Itoa(n), "active": true, "type": "patron", "barcode": "R" + strconv.Itoa(n),
		"personal": map[string]any{"firstName": given, "lastName": family}}
}

func isUser(x *sim.Exchange, name string) bool {
	for _, d := range collections[0].open(x).All() {
		if d["username"] == name {
			return true
		}
	}
	return false
}

func makeInstance(x *sim.Exchange, n int) doc {
	return doc{"hrid": fmt.Sprintf("in%011d", n), "source": "FOLIO", "title": stock.Title(x, n), "instanceTypeId": uuid(0, 1),
		"contributors": []any{map[string]any{"name": stock.Author(x, n)}}}
}

func makeHoldings(_ *sim.Exchange, n int) doc {
	return doc{"hrid": fmt.Sprintf("ho%011d", n), "instanceId": uuid(instanceDigit, n), "permanentLocationId": uuid(0, 2)}
}

func makeItem(_ *sim.Exchange, n int) doc {
	return doc{"hrid": fmt.Sprintf("it%011d", n), "holdingsRecordId": uuid(holdingsDigit, n), "barcode": "B" + strconv.Itoa(n),
		"materialTypeId": uuid(0, 3), "status": map[string]any{"name": "Available"}}
}

const fillTime = 2 * time.Second

// fill lets a request wait for pickup after a while, unless somebody changed it.
func fill(x *sim.Exchange, c *collection, d doc) {
	all, id := c.open(x), d["id"].(string)
	x.After(fillTime, func(time.Time) {
		if now, ok := all.Get(id); ok && now["status"] == "Open - Not yet filled" {
			now = maps.Clone(now)
			now["status"] = "Open - Awaiting pickup"
			all.Put(id, now)
		}
	})
}

func (c *collection) get(x *sim.Exchange) sim.Answer {
	d, ok := c.open(x).Get(x.Value("id"))
	if !ok {
		return text(404, "Not found")
	}
	return sim.JSON(200, d)
}

// missing is the first field that must be there and is not.
func (c *collection) missing(d doc) *sim.Answer {
	for _, name := range c.required {
		if v, ok := d[name]; !ok || v == nil || v == "" {
			an := unprocessable(problem{Message: "must not be null", Type: "1",
				Code: "jakarta.validation.constraints.NotNull.message", Parameters: []parameter{{name, "null"}}})
			return &an
		}
	}
	return nil
}

func (c *collection) create(x *sim.Exchange) sim.Answer {
	var d doc
	if err := x.Decode(&d); err != nil || d == nil {
		return text(400, "Json content error: the body is no record")
	}
	if bad := c.missing(d); bad != nil {
		return *bad
	}
	all := c.open(x)
	id, ok := idOf(x, d)
	if !ok {
		return unprocessable(problem{Message: "must match a UUID", Type: "1", Parameters: []parameter{{"id", id}}})
	}
	if _, there := all.Get(id); there {
		return c.twice("id", "id", id)
	}
	if bad := c.clash(all, d, id); bad != nil {
		return *bad
	}
	d["id"] = id
	if c.lock != unlocked {
		d["_version"] = 1.0
	}
	if c.begin != nil {
		d["status"], d["requestDate"] = "Open - Not yet filled", x.Now().UTC().Format(time.RFC3339)
	}
	d["metadata"] = stamp(x, x.Now())
	all.Put(id, d)
	x.Effect(strings.TrimSuffix(c.list, "s"), "", 0)
	if c.begin != nil {
		c.begin(x, c, d)
	}
	return sim.JSON(201, d).With("Location", c.path+"/"+id)
}

// idOf is the id that the client chose, or else one of ours.
func idOf(x *sim.Exchange, d doc) (id string, ok bool) {
	if id, given := d["id"].(string); given {
		return id, len(id) == 36 && strings.Trim(id, "0123456789abcdef-") == ""
	}
	sum := sha256.Sum256([]byte(x.ID("")))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80 // version 4, as RFC 9562 marks it
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]), true
}

func stamp(x *sim.Exchange, created time.Time) map[string]any {
	return map[string]any{"createdDate": created.UTC().Format(time.RFC3339), "updatedDate": x.Now().UTC().Format(time.RFC3339)}
}

// twice says that a value is there already.
func (c *collection) twice(what, field, v string) sim.Answer {
	return unprocessable(problem{Message: what + " value already exists in table " + c.table + ": " + v,
		Parameters: []parameter{{field, v}}})
}

// clash tells whether another record has the value that only one may have.
func (c *collection) clash(all stock.Stock[doc], d doc, id string) *sim.Answer {
	v, ok := d[c.unique].(string)
	if !ok || v == "" {
		return nil
	}
	for other, o := range all.All() {
		if o[c.unique] == v && other != id {
			an := c.twice("lower(f_unaccent(jsonb ->> '"+c.unique+"'::text))", c.unique, v)
			return &an
		}
	}
	return nil
}

func (c *collection) update(x *sim.Exchange) sim.Answer {
	var d doc
	if err := x.Decode(&d); err != nil || d == nil {
		return text(400, "Json content error: the body is no record")
	}
	if bad := c.missing(d); bad != nil {
		return *bad
	}
	all, id := c.open(x), x.Value("id")
	old, ok := all.Get(id)
	if !ok {
		return text(404, "Not found")
	}
	if bad := c.stale(id, old, d); bad != nil {
		return *bad
	}
	if bad := c.clash(all, d, id); bad != nil {
		return *bad
	}
	d["id"], d["metadata"] = id, stamp(x, x.Now())
	if v, ok := old["_version"].(float64); ok {
		d["_version"] = v + 1
	}
	all.Put(id, d)
	x.Effect(strings.TrimSuffix(c.list, "s")+" update", id, 0)
	return empty()
}

// stale refuses a change of what is not the last version.
func (c *collection) stale(id string, old, d doc) *sim.Answer {
	if c.lock == unlocked || old["_version"] == d["_version"] {
		return nil
	}
	why := fmt.Sprintf("Cannot update record %s because it has been changed (optimistic locking): "+
		"Stored _version is %v, _version of request is %v", id, old["_version"], d["_version"])
	an := text(409, why)
	if c.lock == hidden {
		an = text(500, "ErrorMessage(fields=Map(Severity -> ERROR, SQLSTATE -> 23F09, Message -> "+why+"))")
	}
	return &an
}

func (c *collection) remove(x *sim.Exchange) sim.Answer {
	id := x.Value("id")
	if !c.open(x).Delete(id) {
		return text(404, "Not found")
	}
	x.Effect(strings.TrimSuffix(c.list, "s")+" delete", id, 0)
	return empty()
}
