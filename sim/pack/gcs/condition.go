package gcs

import (
	"net/http"
	"strconv"

	"github.com/heedproject/heed/sim"
)

// conditions are what a request demands of a resource before it acts
// (cloud.google.com/storage/docs/request-preconditions). 0 stands for a
// resource that is not there.
type conditions struct {
	generation, generationNot         *int64
	metageneration, metagenerationNot *int64
	bad                               *sim.Refusal // one of them was no number
}

// conditionsOf reads them from the query, whose parameters begin with prefix:
// if, or ifSource for the source of a copy.
func conditionsOf(x *sim.Exchange, prefix string) (c conditions) {
	c.read(&c.generation, prefix+"GenerationMatch", x.Query(prefix+"GenerationMatch"))
	c.read(&c.generationNot, prefix+"GenerationNotMatch", x.Query(prefix+"GenerationNotMatch"))
	c.read(&c.metageneration, prefix+"MetagenerationMatch", x.Query(prefix+"MetagenerationMatch"))
	c.read(&c.metagenerationNot, prefix+"MetagenerationNotMatch", x.Query(prefix+"MetagenerationNotMatch"))
	return c
}

// conditionsOfHeader reads those of the XML API.
func conditionsOfHeader(x *sim.Exchange) (c conditions) {
	const generation, metageneration = "X-Goog-If-Generation-Match", "X-Goog-If-Metageneration-Match"
	c.read(&c.generation, generation, x.Request.Header.Get(generation))
	c.read(&c.metageneration, metageneration, x.Request.Header.Get(metageneration))
	return c
}

func (c *conditions) read(to **int64, field, text string) {
	if text == "" || c.bad != nil {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		c.bad = invalid(field, "Invalid value for "+field+": give a number.")
		return
	}
	*to = &n
}

// check returns how a resource with these numbers breaks the conditions, nil
// if it does not. A read of what did not change is answered with 304.
func (c *conditions) check(x *sim.Exchange, generation, metageneration int64) *sim.Refusal {
	unchanged := http.StatusPreconditionFailed
	if m := x.Request.Method; m == http.MethodGet || m == http.MethodHead {
		unchanged = http.StatusNotModified
	}
	switch {
	case c.bad != nil:
		return c.bad
	case c.generation != nil && *c.generation != generation:
		return unmet(http.StatusPreconditionFailed, "ifGenerationMatch")
	case c.metageneration != nil && *c.metageneration != metageneration:
		return unmet(http.StatusPreconditionFailed, "ifMetagenerationMatch")
	case c.generationNot != nil && *c.generationNot == generation:
		return unmet(unchanged, "ifGenerationNotMatch")
	case c.metagenerationNot != nil && *c.metagenerationNot == metageneration:
		return unmet(unchanged, "ifMetagenerationNotMatch")
	}
	return nil
}

func unmet(status int, field string) *sim.Refusal {
	return &sim.Refusal{Kind: sim.Conflict, Status: status, Field: field,
		Detail: "At least one of the pre-conditions you specified did not hold."}
}
