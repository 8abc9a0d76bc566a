package shopify_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/pack/packtest"
)

type answer struct {
	Data struct {
		Shop          *struct{ Name string }
		Customers     *struct{}
		Products      *connection
		ProductCreate struct {
			Product    *struct{ ID, Title string }
			UserErrors []userError
		}
		BulkOperation, CurrentBulkOperation        bulk
		BulkOperationRunQuery, BulkOperationCancel struct {
			BulkOperation *bulk
			UserErrors    []userError
		}
	}
	Errors []struct {
		Message    string
		Extensions struct {
			Code          string
			Cost, MaxCost int
		}
	}
	Extensions struct {
		Cost *struct {
			Requested int  `json:"requestedQueryCost"`
			Actual    *int `json:"actualQueryCost"`
			Status    struct {
				Most    float64 `json:"maximumAvailable"`
				Left    float64 `json:"currentlyAvailable"`
				Restore float64 `json:"restoreRate"`
			} `json:"throttleStatus"`
		}
	}
}

type connection struct {
	Nodes    []struct{ ID, Title string }
	PageInfo struct {
		HasNextPage bool
		EndCursor   string
	}
}

type userError struct {
	Field         []string
	Message, Code string
}

type bulk struct{ ID, Status, URL, ObjectCount string }

func ask(c *packtest.Client, query string, variables map[string]any) (packtest.Answer, answer) {
	c.T.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		c.T.Fatal(err)
	}
	a := c.Send("POST", base+"graphql.json", string(body))
	return a, packtest.Read[answer](a)
}

// costs are requested/actual, and what is left.
func costs(a answer) string {
	c := a.Extensions.Cost
	if c == nil {
		return "none"
	}
	actual := "null"
	if c.Actual != nil {
		actual = strconv.Itoa(*c.Actual)
	}
	return strconv.Itoa(c.Requested) + "/" + actual + " " + strconv.Itoa(int(c.Status.Left)) + " of " + strconv.Itoa(int(c.Status.Most))
}

func TestProductsAreReadPageByPage(t *testing.T) {
	c := open(t, sim.World{})
	const q = `query($after: String) { products(first: 40, after: $after) { nodes { id title } pageInfo { hasNextPage endCursor } } }`
	_, first := ask(c, q, nil)
	_, second := ask(c, q, map[string]any{"after": first.Data.Products.PageInfo.EndCursor})
	a, b := first.Data.Products, second.Data.Products
	if len(a.Nodes) != 40 || !a.PageInfo.HasNextPage || len(b.Nodes) != 20 || b.PageInfo.HasNextPage {
		t.Errorf("got %d, then %d", len(a.Nodes), len(b.Nodes))
	}
}

func TestAQueryPaysForWhatItAsksAndGetsBackWhatItDidNotUse(t *testing.T) {
	c := open(t, sim.World{})
	_, a := ask(c, `{ shop { name } }`, nil)
	_, b := ask(c, `{ products(first: 100) { edges { node { id } } } }`, nil)
	_, m := ask(c, `mutation { productCreate(product: {title: "Gauge"}) { product { id } userErrors { message } } }`, nil)
	if diff := cmp.Diff([]string{costs(a), costs(b), costs(m)}, []string{"1/1 999 of 1000", "102/62 937 of 1000", "10/10 927 of 1000"}); diff != "" {
		t.Error(diff)
	}
}

func TestAThrottleIs200WithWhatIsMissing(t *testing.T) {
	c := open(t, sim.World{})
	const q = `{ products(first: 49) { nodes { id variants(first: 15) { nodes { id } } } } }` // 2 + 49 × (1 + 2 + 15) = 884
	_, first := ask(c, q, nil)
	_, _ = ask(c, q, nil)
	for range 20 {
		if _, a := ask(c, q, nil); len(a.Errors) > 0 {
			first = a
			break
		}
	}
	if len(first.Errors) != 1 || first.Errors[0].Extensions.Code != "THROTTLED" || first.Extensions.Cost.Actual != nil {
		t.Fatalf("got %+v", first)
	}
	cost := first.Extensions.Cost
	if cost.Requested != 884 || cost.Status.Left >= 884 || cost.Status.Restore != 50 {
		t.Errorf("got %+v", cost)
	}
	wait := time.Duration((float64(cost.Requested) - cost.Status.Left) / cost.Status.Restore * float64(time.Second))
	c.Advance(wait - 2*time.Second)
	_, early := ask(c, q, nil)
	c.Advance(2 * time.Second)
	a, late := ask(c, q, nil)
	if len(early.Errors) != 1 || len(late.Errors) != 0 || a.Header.Get("X-Shopify-Shop-Api-Call-Limit") != "" {
		t.Errorf("got %+v, then %+v", early.Errors, late.Errors)
	}
}

func TestAThrottleOfASetWaitTellsThatWait(t *testing.T) {
	c := open(t, sim.World{Steps: "graphql.query: throttle(after=4s)"})
	a, got := ask(c, `{ shop { name } }`, nil)
	if cost := got.Extensions.Cost; a.Status != 200 || cost == nil || float64(cost.Requested)-cost.Status.Left != 4*cost.Status.Restore {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAQueryThatIsTooLargeIsRefusedForNothing(t *testing.T) {
	c := open(t, sim.World{})
	a, got := ask(c, `{ products(first: 250) { nodes { id variants(first: 10) { nodes { id } } } } }`, nil)
	if a.Status != 200 || len(got.Errors) != 1 || got.Errors[0].Extensions.Code != "MAX_COST_EXCEEDED" || got.Errors[0].Extensions.Cost != 3252 {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
	if _, a := ask(c, `{ shop { name } }`, nil); costs(a) != "1/1 999 of 1000" {
		t.Errorf("afterwards: got %s", costs(a))
	}
}

func TestWhatMayNotBeReadLeavesAHoleBesideTheData(t *testing.T) {
	c := open(t, sim.World{})
	_, a := ask(c, `{ shop { name } customers(first: 5) { nodes { id } } }`, nil)
	if a.Data.Shop == nil || a.Data.Customers != nil || len(a.Errors) != 1 || a.Errors[0].Extensions.Code != "ACCESS_DENIED" {
		t.Errorf("got %+v", a)
	}
}

func TestAMutationThatIsNotValidHasUserErrors(t *testing.T) {
	c := open(t, sim.World{})
	_, a := ask(c, `mutation($p: ProductCreateInput!) { productCreate(product: $p) { product { id } userErrors { field message } } }`,
		map[string]any{"p": map[string]any{"title": ""}})
	got := a.Data.ProductCreate
	if got.Product != nil || len(a.Errors) != 0 || len(got.UserErrors) != 1 || got.UserErrors[0].Message != "Title can't be blank" {
		t.Errorf("got %+v", a)
	}
}

func TestWhatGraphQLMakesRESTFinds(t *testing.T) {
	c := open(t, sim.World{})
	_, a := ask(c, `mutation { productCreate(product: {title: "Gauge"}) { product { id title } userErrors { field } } }`, nil)
	id := strings.TrimPrefix(a.Data.ProductCreate.Product.ID, "gid://shopify/Product/")
	if got := packtest.Read[struct{ Product product }](c.Get(base + "products/" + id + ".json")).Product; got.Title != "Gauge" {
		t.Errorf("got %+v", got)
	}
}

func TestAFieldThatIsNotThereIsAnErrorIn200(t *testing.T) {
	c := open(t, sim.World{})
	a, got := ask(c, `{ shop { shoes } }`, nil)
	if a.Status != 200 || len(got.Errors) != 1 || got.Errors[0].Extensions.Code != "undefinedField" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

func TestAnInternalErrorIs200(t *testing.T) {
	c := open(t, sim.World{Steps: "graphql.query: envelope"})
	a, got := ask(c, `{ shop { name } }`, nil)
	if a.Status != 200 || len(got.Errors) != 1 || got.Errors[0].Extensions.Code != "INTERNAL_SERVER_ERROR" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

const runBulk = `mutation { bulkOperationRunQuery(query: """{ products { edges { node { id title } } } }""") {
	bulkOperation { id status } userErrors { field message code } } }`

func TestABulkOperationIsCreatedRunsAndIsCompletedWithAFile(t *testing.T) {
	c := open(t, sim.World{})
	_, made := ask(c, runBulk, nil)
	if made.Data.BulkOperationRunQuery.BulkOperation == nil {
		t.Fatalf("got %+v", made)
	}
	_, again := ask(c, runBulk, nil)
	if e := again.Data.BulkOperationRunQuery.UserErrors; len(e) != 1 || e[0].Code != "OPERATION_IN_PROGRESS" {
		t.Errorf("a second one: got %+v", e)
	}
	var states []string
	var last bulk
	for range 3 {
		_, a := ask(c, `{ currentBulkOperation { id status url objectCount } }`, nil)
		last = a.Data.CurrentBulkOperation
		states = append(states, last.Status)
		c.Advance(2 * time.Second)
	}
	if diff := cmp.Diff(states, []string{"CREATED", "RUNNING", "COMPLETED"}); diff != "" || last.ObjectCount != "60" {
		t.Fatalf("%s, %+v", diff, last)
	}
	file := c.Get(strings.TrimPrefix(last.URL, c.URL), "X-Shopify-Access-Token: ")
	lines := strings.Split(strings.TrimSpace(file.Body), "\n")
	var first struct{ ID, Title string }
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 60 || first.Title != "Lamp 1" {
		t.Errorf("got %d lines, %+v, %v", len(lines), first, err)
	}
}

func TestABulkOperationIsCancelledWhileItRunsAndNotAfter(t *testing.T) {
	c := open(t, sim.World{})
	_, made := ask(c, runBulk, nil)
	cancel := func() answer {
		_, a := ask(c, `mutation($id: ID!) { bulkOperationCancel(id: $id) { bulkOperation { id status } userErrors { field message } } }`,
			map[string]any{"id": made.Data.BulkOperationRunQuery.BulkOperation.ID})
		return a
	}
	first := cancel().Data.BulkOperationCancel
	c.Advance(5 * time.Second)
	second := cancel().Data.BulkOperationCancel
	if first.BulkOperation.Status != "CANCELING" || second.BulkOperation.Status != "CANCELED" || len(second.UserErrors) != 1 {
		t.Errorf("got %+v, then %+v", first, second)
	}
}
