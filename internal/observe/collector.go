package observe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/heedproject/heed"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector hands spans to an OTLP collector over HTTP, through a Transport
// like any other call. The client that comes with the exporter retries by
// rules of its own, and links all of gRPC, which every start of heed would pay.
type collector struct {
	url    string
	client *http.Client
}

// Bounds of one message to a collector, and of what is read of its answer.
const (
	sendTimeout = 5 * time.Second
	sendBudget  = 10 * time.Second
	mostSaid    = 64 << 10
)

// busy is a collector that took nothing and may be asked again (OTLP 1.x,
// "OTLP/HTTP Response", "Retryable Response Codes").
var busy = classify.Rule{
	ID: "otlp busy",
	When: classify.Match{Statuses: []classify.StatusRange{
		{From: http.StatusTooManyRequests, To: http.StatusTooManyRequests},
		{From: http.StatusBadGateway, To: http.StatusGatewayTimeout},
	}},
	Then: classify.Verdict{Class: classify.Overloaded, Executed: classify.No, Retry: classify.Idempotent, Scope: classify.ScopeHost},
}

func newCollector(url string) *collector {
	classifier, _ := classify.New([]classify.Rule{busy}) // a test sends again by it
	t := &heed.Transport{
		Classifier: classifier,
		Policy: policy.Policy{
			Endpoint: "otlp",
			Retry:    policy.Retry{Budget: sendBudget},
			Timeouts: policy.Timeouts{Attempt: sendTimeout},
		},
	}
	return &collector{url, &http.Client{Transport: t}}
}

// Start implements otlptrace.Client.
func (*collector) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client.
func (c *collector) Stop(context.Context) error {
	c.client.CloseIdleConnections()
	return nil
}

// UploadTraces implements otlptrace.Client. TracesData is the message of a
// collector's service field by field (opentelemetry-proto, trace/v1).
func (c *collector) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("write spans down: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, mostSaid))
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the collector answered %s", resp.Status)
	}
	return err
}
