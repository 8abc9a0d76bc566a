package gcs

import (
	"net/http"

	"github.com/heedproject/heed/sim"
)

// policy is the IAM policy of a bucket.
type policy struct {
	Version  int       `json:"version"`
	Bindings []binding `json:"bindings"`
	number   int64     // of its state, for the etag
}

type binding struct {
	Role      string   `json:"role"`
	Members   []string `json:"members"`
	Condition resource `json:"condition,omitempty"`
}

func newPolicy(b *bucket) policy {
	return policy{Version: 1, number: 1, Bindings: []binding{
		{Role: "roles/storage.legacyBucketOwner", Members: []string{"projectEditor:" + b.project, "projectOwner:" + b.project}},
		{Role: "roles/storage.legacyBucketReader", Members: []string{"projectViewer:" + b.project}},
	}}
}

func (p policy) answer(b *bucket) sim.Answer {
	return sim.JSON(200, struct {
		Kind       string `json:"kind"`
		ResourceID string `json:"resourceId"`
		policy
		Etag string `json:"etag"`
	}{"storage#policy", "projects/_/buckets/" + b.name, p, etag(p.number)})
}

func getPolicy(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	return b.policy.answer(b)
}

// setPolicy replaces the policy, if it is still the one whose etag was sent.
func setPolicy(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	var sent struct {
		policy
		Etag string `json:"etag"`
	}
	if err := x.Decode(&sent); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	if sent.Etag != "" && sent.Etag != etag(b.policy.number) {
		return x.Refuse(*unmet(http.StatusPreconditionFailed, "etag"))
	}
	sent.number = b.policy.number + 1
	b.policy = sent.policy
	b.changed(x)
	x.Effect("policy", "", 0)
	return b.policy.answer(b)
}

// testPermissions grants whatever is asked about: nobody is a stranger here.
func testPermissions(x *sim.Exchange) sim.Answer {
	if _, bad := findBucket(x, conditions{}); bad != nil {
		return x.Refuse(*bad)
	}
	return sim.JSON(200, struct {
		Kind        string   `json:"kind"`
		Permissions []string `json:"permissions,omitempty"`
	}{"storage#testIamPermissionsResponse", x.Request.URL.Query()["permissions"]})
}
