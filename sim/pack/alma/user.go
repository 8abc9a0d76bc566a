package alma

import (
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/stock"
)

type user struct {
	XMLName struct{} `json:"-" xml:"user"`
	ID      string   `json:"primary_id" xml:"primary_id"`
	First   string   `json:"first_name" xml:"first_name"`
	Last    string   `json:"last_name" xml:"last_name"`
	Status  value    `json:"status" xml:"status"`
	Group   value    `json:"user_group" xml:"user_group"`
	Link    string   `json:"link,omitempty" xml:"link,attr,omitempty"`
}

type users struct {
	XMLName struct{} `json:"-" xml:"users"`
	Users   []user   `json:"user" xml:"user"`
	Total   *int     `json:"total_record_count" xml:"total_record_count,attr"`
}

var active = value{"ACTIVE", "Active"}

func usersOf(x *sim.Exchange) stock.Stock[user] {
	return stock.Open(x, stock.Kind[user]{
		Name: "users", Made: x.World().Records,
		ID: func(n int) string { return "u" + strconv.Itoa(n) },
		Number: func(id string) int {
			n, _ := strconv.Atoi(strings.TrimPrefix(id, "u"))
			return n
		},
		Make: func(n int) user {
			given, family := stock.Person(x, n)
			return user{ID: "u" + strconv.Itoa(n), First: given, Last: family, Status: active, Group: value{"01", "Reader"}}
		},
	})
}

// noUser is the answer where there is none with this id.
func noUser(x *sim.Exchange, id string) sim.Answer {
	return wrong(x, "401861", "User with identifier "+id+" was not found.")
}

func listUsers(x *sim.Exchange) sim.Answer {
	w, ok := windowOf(x)
	if !ok {
		return x.Refuse(sim.Refusal{Kind: sim.BadRequest, Detail: "limit and offset are numbers"})
	}
	field, text, _ := strings.Cut(x.Query("q"), "~")
	text = strings.ToLower(text)
	var list users
	list.Users, list.Total = part(w, func(yield func(user) bool) {
		for id, u := range usersOf(x).All() {
			have := map[string]string{"primary_id": u.ID, "last_name": u.Last, "first_name": u.First}[field]
			u.Link = x.URL(root + "/users/" + id)
			if strings.Contains(strings.ToLower(have), text) && !yield(u) {
				return
			}
		}
	})
	return done(x, list)
}

func getUser(x *sim.Exchange) sim.Answer {
	id := x.Value("user")
	u, ok := usersOf(x).Get(id)
	if !ok {
		return noUser(x, id)
	}
	return done(x, u)
}

func createUser(x *sim.Exchange) sim.Answer {
	var u user
	ok, all := take(x, &u), usersOf(x)
	switch _, there := all.Get(u.ID); {
	case !ok:
		return wrong(x, "60105", "The body is no user.")
	case u.ID == "" || u.Last == "":
		return wrong(x, "401664", "Mandatory field is missing: primary_id, last_name")
	case there:
		return wrong(x, "401851", "User with identifier "+u.ID+" already exists.")
	}
	u.Link = ""
	if u.Status.Value == "" {
		u.Status = active
	}
	all.Put(u.ID, u)
	x.Effect("user", u.ID, 0)
	return done(x, u)
}

// updateUser replaces all of a user, so that fields that are left out are lost.
func updateUser(x *sim.Exchange) sim.Answer {
	id := x.Value("user")
	all := usersOf(x)
	if _, ok := all.Get(id); !ok {
		return noUser(x, id)
	}
	var u user
	switch ok := take(x, &u); {
	case !ok:
		return wrong(x, "60105", "The body is no user.")
	case u.Last == "":
		return wrong(x, "401664", "Mandatory field is missing: last_name")
	}
	u.ID, u.Link = id, ""
	all.Put(id, u)
	x.Effect("user update", id, 0)
	return done(x, u)
}

func deleteUser(x *sim.Exchange) sim.Answer {
	id := x.Value("user")
	if !usersOf(x).Delete(id) {
		return noUser(x, id)
	}
	x.Effect("user delete", id, 0)
	return empty()
}
