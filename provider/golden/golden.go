// Package golden holds, per profile, exchanges that show the provider's
// dialect: a request, the answer to it, and what that meant.
//
// It is data only, so that whoever plays a provider can send the answers and
// whoever judges answers can be held to the meanings, neither knowing the
// other. All bodies are minimal forms of our own: the names of the fields are
// the provider's, the texts are shortened.
//
// A file is a list of exchanges:
//
//	exchanges:
//	  - name: the minute is used up              # unique in the file
//	    request:
//	      method: POST
//	      path: /v1/charges?expand=x             # with query, if that matters
//	      header: {Idempotency-Key: k-1}         # optional
//	      body: amount=100                       # optional
//	    response:
//	      status: 429
//	      header:
//	        Date: Mon, 30 Nov 2026 12:00:00 GMT  # instants are measured against it
//	        Retry-After: ['', '30']              # a text, or a list: several lines
//	      body: '{"error":{}}'                   # or base64: … for what is no text
//	      encoding: gzip                         # optional: compressed when sent
//	      cut: 5                                 # optional: the connection ends after 5 bytes of body
//	    expect:
//	      class: throttled
//	      executed: no
//	      retry: any
//	      scope: key
//	      wait: 30s                              # left out: no wait is told
//	      source: Retry-After                    # a header, or the id of a rule; optional
//	      rule: stripe/rate-limited              # left out: none of the profile's decided
//	      remaining: 0                           # the quota told of; optional
//	  - name: the connection breaks
//	    request: {method: GET, path: /v1/charges}
//	    failure: reset_before_header             # in place of response: a word of rules
//	    expect: {class: transient, executed: maybe, retry: idempotent, scope: host}
//
// An answer without a Date comes at 2026-11-30T12:00:00Z. A throttle that says
// that nothing remains, and no wait, makes callers wait for the reset.
package golden

import "embed"

// Files holds one NAME.yaml per profile.
//
//go:embed *.yaml
var Files embed.FS
