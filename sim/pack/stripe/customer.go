package stripe

import "github.com/heedproject/heed/sim"

type customer struct {
	ID          string            `json:"id"`
	Object      string            `json:"object"`
	Created     int64             `json:"created"`
	Description *string           `json:"description"`
	Email       *string           `json:"email"`
	Livemode    bool              `json:"livemode"`
	Metadata    map[string]string `json:"metadata"`
	Name        *string           `json:"name"`
}

func createCustomer(x *sim.Exchange) sim.Answer {
	c := customer{ID: x.ID("cus_"), Object: "customer", Created: x.Now().Unix()}
	c.fill(x)
	sim.Rows[customer](x, "customers").Put(c.ID, c)
	x.Effect("customer", "", 0)
	emit(x, "customer.created", c)
	return done(x, c)
}

// fill sets what the form names and keeps the rest.
func (c *customer) fill(x *sim.Exchange) {
	form := x.Form()
	for name, p := range map[string]**string{"description": &c.Description, "email": &c.Email, "name": &c.Name} {
		if v, ok := form[name]; ok {
			*p = optional(v[0])
		}
	}
	c.Metadata = metadata(form, c.Metadata)
}

func updateCustomer(x *sim.Exchange) sim.Answer {
	customers := sim.Rows[customer](x, "customers")
	c, ok := customers.Get(x.Value("id"))
	if !ok {
		return x.Refuse(missing("customer", x.Value("id")))
	}
	c.fill(x)
	customers.Put(c.ID, c)
	x.Effect("customer update", c.ID, 0)
	emit(x, "customer.updated", c)
	return done(x, c)
}

func deleteCustomer(x *sim.Exchange) sim.Answer {
	id := x.Value("id")
	if !sim.Rows[customer](x, "customers").Delete(id) {
		return x.Refuse(missing("customer", id))
	}
	x.Effect("customer delete", id, 0)
	emit(x, "customer.deleted", deleted{id, "customer", true})
	return done(x, deleted{id, "customer", true})
}
