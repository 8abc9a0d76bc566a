package hubspot

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// contact is a person. All properties are texts.
type contact struct {
	id         int
	properties map[string]string
	created    time.Time
	updated    time.Time
}

// shown is a contact as a caller sees it.
type shown struct {
	ID         string            `json:"id"`
	Properties map[string]string `json:"properties"`
	Created    string            `json:"createdAt"`
	Updated    string            `json:"updatedAt"`
	Archived   bool              `json:"archived"`
}

const timeForm = "2006-01-02T15:04:05.000Z"

// usual are the properties that are shown where none are named.
var usual = []string{"createdate", "email", "firstname", "hs_object_id", "lastmodifieddate", "lastname"}

func (c contact) show(names []string) shown {
	if len(names) == 0 {
		names = usual
	}
	all := maps.Clone(c.properties)
	all["hs_object_id"] = strconv.Itoa(c.id)
	all["createdate"], all["lastmodifieddate"] = c.created.UTC().Format(timeForm), c.updated.UTC().Format(timeForm)
	maps.DeleteFunc(all, func(name string, _ string) bool { return !slices.Contains(names, name) })
	return shown{ID: strconv.Itoa(c.id), Properties: all, Created: c.created.UTC().Format(timeForm), Updated: c.updated.UTC().Format(timeForm)}
}

// atFirst is how many contacts there are when nobody made one.
const atFirst = 30

// book is all contacts by id, and the ids by address.
type book struct {
	contacts  *sim.Table[contact]
	addresses *sim.Table[int]
	made      *sim.Table[int] // how many were ever made, under ""
}

func bookOf(x *sim.Exchange) book {
	b := book{sim.Rows[contact](x, "contacts"), sim.Rows[int](x, "addresses"), sim.Rows[int](x, "made")}
	if b.made.Len() == 0 {
		for n := range atFirst {
			// They were there long before, so that a search finds them.
			b.add(x.Now().Add(-time.Hour), map[string]string{
				"email": fmt.Sprintf("person%d@example.org", n+1), "firstname": "Person", "lastname": strconv.Itoa(n + 1),
			})
		}
	}
	return b
}

func (b book) add(now time.Time, properties map[string]string) contact {
	n, _ := b.made.Get("")
	b.made.Put("", n+1)
	c := contact{n + 1, properties, now, now}
	b.put(c)
	return c
}

func (b book) put(c contact) {
	b.contacts.Put(strconv.Itoa(c.id), c)
	if address := c.properties["email"]; address != "" {
		b.addresses.Put(strings.ToLower(address), c.id)
	}
}

func (b book) delete(c contact) {
	b.contacts.Delete(strconv.Itoa(c.id))
	b.addresses.Delete(strings.ToLower(c.properties["email"]))
}

// find takes an id, or an address where property says email.
func (b book) find(id, property string) (contact, bool) {
	if property == "email" {
		n, ok := b.addresses.Get(strings.ToLower(id))
		if !ok {
			return contact{}, false
		}
		id = strconv.Itoa(n)
	}
	return b.contacts.Get(id)
}

// input is a contact as a caller sends it.
type input struct {
	ID         string            `json:"id"`
	IDProperty string            `json:"idProperty"`
	Properties map[string]string `json:"properties"`
}

// check refuses addresses that are none, and one that another contact has.
func (b book) check(in input, own int) *sim.Refusal {
	address, given := in.Properties["email"]
	if given && !strings.Contains(address, "@") {
		return &sim.Refusal{Kind: sim.BadRequest, Detail: "Property values were not valid: Email address " + address + " is invalid"}
	}
	if other, ok := b.addresses.Get(strings.ToLower(address)); ok && given && other != own {
		return &sim.Refusal{Kind: sim.Conflict, Detail: "Contact already exists. Existing ID: " + strconv.Itoa(other)}
	}
	return nil
}

func missing() *sim.Refusal { return &sim.Refusal{Kind: sim.NotFound, Detail: "resource not found"} }

// createOne makes a contact of in; so do the other functions of this form with
// what their names say. status is that of the answer to a single one.
func createOne(x *sim.Exchange, in input) (c contact, status int, bad *sim.Refusal) {
	b := bookOf(x)
	if len(in.Properties) == 0 {
		return c, 0, &sim.Refusal{Kind: sim.BadRequest, Detail: `send {"properties": {"email": "…"}}`}
	}
	if bad := b.check(in, 0); bad != nil {
		return c, 0, bad
	}
	c = b.add(x.Now(), in.Properties)
	x.Effect("contact", in.Properties["email"], 0)
	return c, http.StatusCreated, nil
}

func readOne(x *sim.Exchange, in input) (contact, int, *sim.Refusal) {
	c, ok := bookOf(x).find(in.ID, in.IDProperty)
	if !ok {
		return c, 0, missing()
	}
	return c, http.StatusOK, nil
}

func updateOne(x *sim.Exchange, in input) (contact, int, *sim.Refusal) {
	b := bookOf(x)
	c, ok := b.find(in.ID, in.IDProperty)
	if !ok {
		return c, 0, missing()
	}
	if bad := b.check(in, c.id); bad != nil {
		return c, 0, bad
	}
	if in.Properties["email"] != "" {
		b.addresses.Delete(strings.ToLower(c.properties["email"]))
	}
	c.properties = maps.Clone(c.properties)
	maps.Copy(c.properties, in.Properties)
	c.updated = x.Now()
	b.put(c)
	x.Effect("contact update", "", 0)
	return c, http.StatusOK, nil
}

func upsertOne(x *sim.Exchange, in input) (contact, int, *sim.Refusal) {
	if in.IDProperty != "email" {
		return contact{}, 0, &sim.Refusal{Kind: sim.BadRequest, Detail: "an upsert needs idProperty email, and the address as id"}
	}
	if _, ok := bookOf(x).find(in.ID, "email"); ok {
		return updateOne(x, in)
	}
	in.Properties = maps.Clone(in.Properties)
	if in.Properties == nil {
		in.Properties = map[string]string{}
	}
	in.Properties["email"] = in.ID
	return createOne(x, in)
}

func createContact(x *sim.Exchange) sim.Answer {
	var in input
	_ = x.Decode(&in) // what cannot be read has no properties, and is refused for that
	return single(x, in, createOne)
}

func getContact(x *sim.Exchange) sim.Answer {
	return single(x, input{ID: x.Value("id"), IDProperty: x.Query("idProperty")}, readOne)
}

func updateContact(x *sim.Exchange) sim.Answer {
	var in input
	if x.Decode(&in) != nil || len(in.Properties) == 0 {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: `send {"properties": {…}}`})
	}
	in.ID, in.IDProperty = x.Value("id"), x.Query("idProperty")
	return single(x, in, updateOne)
}

func single(x *sim.Exchange, in input, do func(*sim.Exchange, input) (contact, int, *sim.Refusal)) sim.Answer {
	c, status, bad := do(x, in)
	if bad != nil {
		return x.Refuse(*bad)
	}
	return sim.JSON(status, c.show(names(x.Query("properties"))))
}

func names(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}

// archiveContact answers 204 whether or not the contact was there.
func archiveContact(x *sim.Exchange) sim.Answer {
	b := bookOf(x)
	if c, ok := b.find(x.Value("id"), ""); ok {
		b.delete(c)
		x.Effect("contact archive", x.Value("id"), 0)
	}
	return sim.Answer{Status: http.StatusNoContent}
}
