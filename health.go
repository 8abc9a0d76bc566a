package heed

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/heedproject/heed/admit"
	"github.com/heedproject/heed/classify"
	"github.com/heedproject/heed/policy"
)

// health sends the health request of the policy in place of a probe: the call
// that would find out whether the dependency is back is not the one that pays.
func (o *op) health() {
	r := o.checkHealth(&o.p.Breaker.Health)
	r.Pass = o.pass
	told := o.gate.Observe(time.Now(), r)
	o.seen = true
	o.release()
	if told.Changed {
		o.tellBreaker(told, &r)
	}
}

func (o *op) checkHealth(h *policy.Health) admit.Result {
	ctx, cancel := context.WithTimeout(o.in.Context(), o.p.Timeouts.Connect+o.p.Timeouts.Header)
	defer cancel()
	req, err := o.healthRequest(ctx, h)
	if err != nil {
		return admit.Result{Verdict: classify.Verdict{Class: classify.Permanent}, Failure: classify.BadRequest}
	}
	sent := time.Now()
	resp, err := o.s.base.RoundTrip(req)
	if err != nil {
		if o.in.Context().Err() != nil {
			return admit.Result{Failure: classify.Canceled}
		}
		return admit.Result{Verdict: classify.Verdict{Class: classify.Transient}, Failure: classify.OtherFailure}
	}
	defer resp.Body.Close()
	x := classify.Exchange{
		Method: h.Method, Path: req.URL.Path, Status: resp.StatusCode, Header: resp.Header,
		ContentLength: resp.ContentLength, SentAt: sent,
	}
	if h.Method != http.MethodHead {
		head, err := io.ReadAll(io.LimitReader(resp.Body, policy.PeekLimit))
		if err != nil {
			x.Failure = classify.BodyCut
		}
		x.Body, x.Peeked = plain(resp.Header, head)
		x.BodyEnd = len(head) < policy.PeekLimit
	}
	x.Now = time.Now()
	v := o.t.Classifier.Classify(&x, &policy.Verify{})
	if v.Class != classify.OK { // a health request that is refused has not passed
		v.Class = classify.Transient
	}
	return admit.Result{Verdict: v, Status: resp.StatusCode}
}

func (o *op) healthRequest(ctx context.Context, h *policy.Health) (*http.Request, error) {
	ref, err := url.Parse(h.Path)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, h.Method, o.in.URL.ResolveReference(ref).String(), nil)
	if err == nil && o.t.Token != nil {
		if tok, err := o.t.Token.Current(ctx); err == nil {
			tok.Apply(req)
		}
	}
	return req, err
}
