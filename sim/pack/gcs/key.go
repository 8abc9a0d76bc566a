package gcs

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/heedproject/heed/sim"
)

// key is an HMAC key of a service account.
type key struct {
	id, project, account string
	state                string // ACTIVE or INACTIVE
	number               int64  // of the state, for the etag
	created, updated     time.Time
}

func keys(x *sim.Exchange) *sim.Table[*key] { return sim.Rows[*key](x, "keys") }

func (k *key) told(x *sim.Exchange) resource {
	path := "projects/" + k.project + "/hmacKeys/" + k.id
	return resource{
		"kind": "storage#hmacKeyMetadata", "id": k.project + "/" + k.id, "accessId": k.id, "projectId": k.project,
		"serviceAccountEmail": k.account, "state": k.state, "etag": etag(k.number), "selfLink": link(x, path),
		"timeCreated": stamp(k.created), "updated": stamp(k.updated),
	}
}

func createKey(x *sim.Exchange) sim.Answer {
	account := x.Query("serviceAccountEmail")
	if !strings.Contains(account, "@") {
		return x.Refuse(*invalid("serviceAccountEmail", "Required parameter: serviceAccountEmail"))
	}
	k := &key{id: strings.ToUpper(x.ID("GOOG1E")), project: x.Value("project"), account: account, state: "ACTIVE",
		number: 1, created: x.Now(), updated: x.Now()}
	keys(x).Put(k.id, k)
	x.Effect("key", k.project+" "+account, 0)
	return sim.JSON(200, resource{
		"kind": "storage#hmacKey", "metadata": k.told(x), "secret": x.ID("simulated") + x.ID(""),
	})
}

// findKey returns the key that the path names.
func findKey(x *sim.Exchange) (*key, *sim.Refusal) {
	k, ok := keys(x).Get(x.Value("id"))
	if !ok || k.project != x.Value("project") {
		return nil, missing("HMAC key")
	}
	return k, nil
}

func listKeys(x *sim.Exchange) sim.Answer {
	var ids []string
	for id, k := range keys(x).All() {
		account := x.Query("serviceAccountEmail")
		if k.project == x.Value("project") && (account == "" || account == k.account) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids, next, bad := page(x, ids)
	if bad != nil {
		return x.Refuse(*bad)
	}
	items := make([]resource, len(ids))
	for i, id := range ids {
		k, _ := keys(x).Get(id)
		items[i] = k.told(x)
	}
	return listed("storage#hmacKeysMetadata", items, next)
}

func getKey(x *sim.Exchange) sim.Answer {
	k, bad := findKey(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	return sim.JSON(200, k.told(x))
}

// updateKey changes the state, if the key is still as the etag that was sent
// says.
func updateKey(x *sim.Exchange) sim.Answer {
	k, bad := findKey(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	var sent struct{ State, Etag string }
	if err := x.Decode(&sent); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	switch {
	case sent.State != "ACTIVE" && sent.State != "INACTIVE":
		return x.Refuse(*invalid("state", "Invalid value for state: '"+sent.State+"'; give ACTIVE or INACTIVE."))
	case sent.Etag != "" && sent.Etag != etag(k.number):
		return x.Refuse(*unmet(http.StatusPreconditionFailed, "etag"))
	}
	k.state, k.updated = sent.State, x.Now()
	k.number++
	return sim.JSON(200, k.told(x))
}

func deleteKey(x *sim.Exchange) sim.Answer {
	k, bad := findKey(x)
	if bad != nil {
		return x.Refuse(*bad)
	}
	if k.state != "INACTIVE" {
		return x.Refuse(*invalid("state", "Cannot delete keys in 'ACTIVE' state."))
	}
	keys(x).Delete(k.id)
	x.Effect("key delete", k.id, 0)
	return sim.Answer{Status: http.StatusNoContent}
}

func getServiceAccount(x *sim.Exchange) sim.Answer {
	return sim.JSON(200, resource{
		"kind":          "storage#serviceAccount",
		"email_address": "service-" + projectNumber(x.Value("project")) + "@gs-project-accounts.iam.gserviceaccount.com",
	})
}
