// Package gcs simulates Google Cloud Storage: buckets, objects, their access
// lists and policies, notifications and HMAC keys by the JSON API (version 1),
// uploads in one piece, in two parts and resumable, downloads with ranges, and
// the download half of the XML API, which Google's own clients use.
//
// What it holds to, from cloud.google.com/storage/docs: the discovery document
// of the JSON API (revision 2026-10-09), json_api/v1/status-codes,
// resumable-uploads, request-preconditions and retry-strategy. Generations and
// metagenerations grow, preconditions are checked, checksums are computed and
// compared, a resumable upload keeps whole pieces of 256 KiB and lives for a
// week, a bucket that holds objects is not deleted, an HMAC key must be
// inactive before it goes.
//
// What it does not do, and says so when asked: keep old generations of an
// object (versioning), soft delete, folders, encryption with a customer's own
// keys. Notifications are kept, and nothing is published. No credential is
// asked for, and there are no limits of its own: World.Limits and World.Rate
// set some. A case holds at most 1 GiB of objects; equal contents count once.
//
// # Retry tests
//
// A client can plan its own failures, as with Google's storage testbench:
//
//	POST /retry_test   {"instructions": {"storage.buckets.get": ["return-503", "return-503"]}}
//
// answers with an id. Requests that carry it in x-retry-test-id meet the
// instructions of their method one after the other, and GET /retry_test/{id}
// tells whether all were used up. The instructions: return-CODE,
// return-reset-connection, return-broken-stream, return-broken-stream-after-NK,
// return-broken-stream-final-chunk-after-NB, return-CODE-after-NK,
// stall-for-Ns-after-MK. Any other is answered with 501.
package gcs

import (
	"net/http"
	"strings"

	"github.com/heedproject/heed/sim"
	"github.com/heedproject/heed/sim/rate"
)

// maxBody bounds one request: Google's clients send chunks of 16 MiB unless
// they are told otherwise.
const maxBody = 64 << 20

// Pack returns it.
func Pack() sim.Pack {
	return sim.Pack{
		Name:       "gcs",
		Access:     "none; keys of your own for encryption are 501",
		Hosts:      []string{"storage.googleapis.com"},
		Dialect:    sim.Dialect{Refuse: refuse, Quota: func(*sim.Answer, []rate.Told) {}},
		Authorize:  unencrypted,
		MaxBody:    maxBody,
		Script:     instruct,
		Operations: operations(),
	}
}

// operations are listed in a function, not in a variable, because some of them
// tell what there is.
func operations() []sim.Operation {
	const b, o, project = "/storage/v1/b/{bucket}", "/storage/v1/b/{bucket}/o/{path...}", "/storage/v1/projects/{project}"
	list := []sim.Operation{
		{Name: "storage.buckets.insert", Route: "POST /storage/v1/b", Do: insertBucket},
		{Name: "storage.buckets.list", Route: "GET /storage/v1/b", Do: listBuckets},
		{Name: "storage.buckets.get", Route: "GET " + b, Do: getBucket},
		{Name: "storage.buckets.patch", Route: "PATCH " + b, Do: patchBucket},
		{Name: "storage.buckets.update", Route: "PUT " + b, Do: updateBucket},
		{Name: "storage.buckets.delete", Route: "DELETE " + b, Do: deleteBucket},
		{Name: "storage.buckets.lockRetentionPolicy", Route: "POST " + b + "/lockRetentionPolicy", Do: lockRetention},
		{Name: "storage.buckets.getIamPolicy", Route: "GET " + b + "/iam", Do: getPolicy},
		{Name: "storage.buckets.setIamPolicy", Route: "PUT " + b + "/iam", Do: setPolicy},
		{Name: "storage.buckets.testIamPermissions", Route: "GET " + b + "/iam/testPermissions", Do: testPermissions},
		{Name: "storage.notifications.insert", Route: "POST " + b + "/notificationConfigs", Do: insertNotification},
		{Name: "storage.notifications.list", Route: "GET " + b + "/notificationConfigs", Do: listNotifications},
		{Name: "storage.notifications.get", Route: "GET " + b + "/notificationConfigs/{id}", Do: getNotification},
		{Name: "storage.notifications.delete", Route: "DELETE " + b + "/notificationConfigs/{id}", Do: deleteNotification},
		{Name: "storage.hmacKey.create", Route: "POST " + project + "/hmacKeys", Do: createKey},
		{Name: "storage.hmacKey.list", Route: "GET " + project + "/hmacKeys", Do: listKeys},
		{Name: "storage.hmacKey.get", Route: "GET " + project + "/hmacKeys/{id}", Do: getKey},
		{Name: "storage.hmacKey.update", Route: "PUT " + project + "/hmacKeys/{id}", Do: updateKey},
		{Name: "storage.hmacKey.delete", Route: "DELETE " + project + "/hmacKeys/{id}", Do: deleteKey},
		{Name: "storage.serviceaccount.get", Route: "GET " + project + "/serviceAccount", Do: getServiceAccount},
	}
	list = append(list, accessOperations("storage.bucket_acl", b+"/acl", "", bucketAccess)...)
	list = append(list, accessOperations("storage.default_object_acl", b+"/defaultObjectAcl", "", defaultAccess)...)
	list = append(list, accessOperations("storage.object_acl", o, "{object}/acl", objectAccess)...)
	return append(append(list, objectOperations(o)...), retryOperations()...)
}

func objectOperations(o string) []sim.Operation {
	return []sim.Operation{
		{Name: "storage.objects.list", Route: "GET /storage/v1/b/{bucket}/o", Do: listObjects},
		{Name: "storage.objects.insert", Route: "POST /upload/storage/v1/b/{bucket}/o", When: without("upload_id"), Do: insertObject},
		{Name: "storage.objects.insert.chunk", Route: "POST /upload/storage/v1/b/{bucket}/o", Do: continueUpload},
		{Name: "storage.objects.insert.put", Route: "PUT /upload/storage/v1/b/{bucket}/o", Do: continueUpload},
		{Name: "storage.objects.insert.cancel", Route: "DELETE /upload/storage/v1/b/{bucket}/o", Do: cancelUpload},
		{Name: "storage.objects.compose", Route: "POST " + o, When: shaped("{object}/compose"), Do: composeObject},
		{Name: "storage.objects.rewrite", Route: "POST " + o, When: shaped("{object}/rewriteTo/b/{bucket}/o/{object}"), Do: rewriteObject},
		{Name: "storage.objects.copy", Route: "POST " + o, When: shaped("{object}/copyTo/b/{bucket}/o/{object}"), Do: copyObject},
		{Name: "storage.objects.get", Route: "GET " + o, When: shaped("{object}"), Do: getObject},
		{Name: "storage.objects.get.download", Route: "GET /download" + o, When: shaped("{object}"), Do: getObject},
		{Name: "storage.objects.patch", Route: "PATCH " + o, When: shaped("{object}"), Do: patchObject},
		{Name: "storage.objects.update", Route: "PUT " + o, When: shaped("{object}"), Do: updateObject},
		{Name: "storage.objects.delete", Route: "DELETE " + o, When: shaped("{object}"), Do: deleteObject},
	}
}

func retryOperations() []sim.Operation {
	return []sim.Operation{
		{Name: "retry_test.create", Route: "POST /retry_test", Do: createTrial, Free: true},
		{Name: "retry_test.list", Route: "GET /retry_tests", Do: listTrials, Free: true},
		{Name: "retry_test.get", Route: "GET /retry_test/{id}", Do: getTrial, Free: true},
		{Name: "retry_test.delete", Route: "DELETE /retry_test/{id}", Do: deleteTrial, Free: true},
		{Name: "storage.objects.get.xml", Route: "GET /{bucket}/{path...}", Do: getXML},
	}
}

// without is true of requests that lack a query parameter.
func without(name string) func(*sim.Exchange) bool {
	return func(x *sim.Exchange) bool { return x.Query(name) == "" }
}

// unencrypted refuses requests that bring keys to encrypt with: an object that
// anybody can read afterwards would be a lie.
func unencrypted(x *sim.Exchange) *sim.Refusal {
	for name := range x.Request.Header {
		if strings.HasPrefix(name, "X-Goog-Encryption-") || strings.HasPrefix(name, "X-Goog-Copy-Source-Encryption-") {
			return &sim.Refusal{Kind: sim.BadRequest, Status: http.StatusNotImplemented,
				Detail: "This simulator does not encrypt with a customer's own keys."}
		}
	}
	return nil
}

// missing refuses because a resource is not there.
func missing(what string) *sim.Refusal {
	return &sim.Refusal{Kind: sim.NotFound, Detail: "The specified " + what + " does not exist."}
}

func invalid(field, detail string) *sim.Refusal {
	return &sim.Refusal{Kind: sim.BadRequest, Field: field, Detail: detail}
}
