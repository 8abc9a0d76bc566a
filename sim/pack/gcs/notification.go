package gcs

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/heedproject/heed/sim"
)

func insertNotification(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	var n resource
	if err := x.Decode(&n); err != nil {
		return x.Refuse(*invalid("", "Parse Error: "+err.Error()))
	}
	topic, _ := n["topic"].(string)
	format, _ := n["payload_format"].(string)
	switch {
	case !strings.HasPrefix(topic, "//pubsub.googleapis.com/projects/"):
		return x.Refuse(*invalid("topic", "Invalid Google Cloud Pub/Sub topic: '"+topic+"'"))
	case format != "JSON_API_V1" && format != "NONE":
		return x.Refuse(*invalid("payload_format", "Invalid payload format: '"+format+"'"))
	}
	b.notified++
	id := strconv.Itoa(b.notified)
	path := "b/" + b.name + "/notificationConfigs/" + id
	maps.Copy(n, resource{"kind": "storage#notification", "id": id, "etag": etag(int64(b.notified)), "selfLink": link(x, path)})
	b.notifications[id] = n
	x.Effect("notification", b.name+" "+topic, 0)
	return sim.JSON(200, n)
}

func listNotifications(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	var items []resource
	for _, id := range slices.Sorted(maps.Keys(b.notifications)) {
		items = append(items, b.notifications[id])
	}
	return listed("storage#notifications", items, "")
}

func getNotification(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	n, ok := b.notifications[x.Value("id")]
	if !ok {
		return x.Refuse(*missing("notification"))
	}
	return sim.JSON(200, n)
}

func deleteNotification(x *sim.Exchange) sim.Answer {
	b, bad := findBucket(x, conditions{})
	if bad != nil {
		return x.Refuse(*bad)
	}
	if _, ok := b.notifications[x.Value("id")]; !ok {
		return x.Refuse(*missing("notification"))
	}
	delete(b.notifications, x.Value("id"))
	return sim.Answer{Status: http.StatusNoContent}
}
