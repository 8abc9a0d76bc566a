// Package provider holds what is known of a provider's API as data: what its
// error answers mean, which headers tell of quota, what it bears. A profile is
// a YAML file in profiles/, in the words of heed.yaml, and every fact in it
// says where it is known from and how well.
//
// Get compiles a built-in profile into the values that classify, hint and
// policy take; Read does the same with one of somebody's own. The tables in
// this package are the grammar of those words for heed.yaml too, so that a rule
// can be moved from one to the other. A Judge says what an exchange means to a
// profile, and why.
//
// A profile is no promise of the provider: facts of the grade unverified are
// guesses that have not done harm yet. Facts lists them.
//
// # SCHEMA
//
// A profile is one document. Every fact has source and grade (documented, seen,
// reported, general, unverified) and may have checked, the day of the last
// look; in a built-in profile a fact without them is an error. (used) marks
// what heed acts on, (told) what is only shown by heed provider show.
//
//	name: stripe
//	title: Stripe API v1 and v2
//	extends: generic              # its rules and hints stand behind the own ones
//	hosts: [api.stripe.com]       # (told)
//
// Terms of heed.yaml may stand here too (used): allow, retry, backoff,
// timeouts, breaker, verify, limits (with source and grade).
//
// Rules (used) are tried in order, the first match wins, the vendor-neutral
// table stands behind them. class, executed, retry and scope are the closed
// words of the classifier; executed, retry and scope follow from class where
// they are not written. A quota that comes back at a fixed time is throttled
// with a wait and note: quota; a key in flight is transient with retry:
// same_key and note: in_flight; a success that is none to the letter is ok
// with note: empty, partial, duplicate or pending; what must be looked up
// before a repeat is unknown, or permanent with executed: maybe, and verify.
//
//	rules:
//	  - id: name/short-fact
//	    when:                     # all of it must hold
//	      methods: [GET]
//	      paths: ['/v1/**']       # * within a segment, ** across
//	      asked: [application/json]        # the request accepts nothing else
//	      status: [429, 5xx, 500-504]
//	      failures: [reset_before_header]
//	      media: [application/json, '*/*+xml']
//	      not_media: [application/json]   # an answer of the wrong kind
//	      header: {X-Reason: present, X-Other: absent, X-Code: '^7$'}
//	      json: [{path: '$.error.code', value: '^x$'}, {path: '$.data', absent: true}]
//	      xml: {names: [Exception], attr: exceptionCode, value: '^x$'}  # without attr: the text
//	      text: '^error code: 1015'
//	      body: empty             # or malformed, html
//	    then: {class: throttled, executed: no, retry: any, scope: key, wait: 1s}
//	    wait:                     # one source, or a list: the first that says something
//	      - {header: Retry-After-Ms, format: ms, ignore: ['-1'], zero: skip}
//	      - {header: X-Limits, format: key_value, key: resets, add: 1s}
//	      - {json: '$.retry_after', format: s, ceiling: 1h}
//	      - {xml: retryAfter, format: s}          # or {name: a, attr: b}
//	      - {text: 'again in (\S+s)', format: go_duration}
//	      - {calc: (asked - left) / rate, vars: {asked: $.asked, left: $.left, rate: $.rate}, floor: 100ms}
//	      - {calendar: {every: day, zone: America/Los_Angeles}, add: 1s}   # zone: unknown
//	      - {const: 16m}
//	    combine: max              # the longest of all instead of the first
//	    note: in_flight           # (told) empty partial duplicate pending quota in_flight outdated lockout
//	    effect: lower_rate        # (told) lower_concurrency shrink_request renew_lock
//	    verify: holds             # (told) an entry of recipes
//	    counts: [bad-answers]     # (told) entries of ban_counters
//
// What of a wait cannot be read, is negative, is ignored or lies beyond ceiling
// is not said: the next source counts, and nothing is ever shortened. Zero and
// the past give the floor (zero: skip asks the next source). Where no source
// says anything, the floor of the last one counts. Instants are measured
// against the Date of the answer (clock: local against ours). The standard
// headers (Retry-After) and then.wait hold besides: the longest counts; where a
// provider writes one of them in another unit, say so under hints. A
// calendar whose zone is unknown turns at the next full hour, which is the
// next that can be midnight somewhere. A rolling window has no turn: give it a
// const. Formats: s ms epoch_s epoch_ms iso8601 http_date go_duration
// pb_duration retry_after key_value.
//
// Hints are quota headers, read on every answer (used; observe_only: told):
//
//	hints:
//	  sources:
//	    - {header: X-Exl-Api-Remaining, field: remaining, format: number, ignore: ['-1'],
//	       observe_only: true, bucket: daily, source: …, grade: documented}
//
// retry_override (used) are headers by which the server says whether to repeat;
// Stripe-Should-Retry and X-Should-Retry are known without:
//
//	retry_override:
//	  - {header: X-Again, true: '^yes$', false: '^no$', status: [5xx]}
//
// fixups: query is set on every request (used), a header is told:
//
//	fixups:
//	  - {query: {EXCEPTIONS: XML}, about: errors painted as pictures cannot be told}
//	  - {header: User-Agent, value: the name of the application, about: required}
//
// buckets are limits (told), but for those with pace: true (used: at most one
// of requests and one of concurrency; it becomes limits.rate and limits.burst,
// or limits.concurrency). A window bears no burst, a token or leaky bucket its
// capacity. Give limits or pace, not both.
//
//	buckets:
//	  - id: per-minute
//	    kind: token               # leaky fixed_window sliding concurrency spacing calendar_quota
//	    capacity: 40
//	    refill: 2/s               # token and leaky
//	    window: 1m                # fixed_window, sliding; the pause of spacing
//	    every: day                # calendar_quota, with zone: an IANA name, account or unknown
//	    key: [app, store]         # who shares it, in words
//	    methods: [GET]            # what it counts, with paths
//	    cost: {unit: points, default: 10, by: [{methods: [DELETE], paths: ['/orders/**'], cost: 2}], told: '$.extensions.cost'}
//	    penalty: {wait: 30s, extends: true, counts: true, about: …}
//	    plans: {plus: {capacity: 400, refill: 20/s}}
//	    shares: [other-bucket]
//	    discover: GET /account/limits
//	    about: …
//	    pace: true
//
// idempotency (header, methods, max_len, quoted: used; the rest told):
//
//	idempotency:
//	  header: Idempotency-Key     # or field: $.client_order_id, for a key in the body
//	  methods: [POST]
//	  max_len: 255
//	  quoted: false
//	  window: 24h                 # kept at least
//	  forgets: 720h               # kept at most
//	  scope: account
//	  replay_header: Idempotent-Replayed
//	  failures: replayed          # reexecuted not_kept
//	  in_flight: stripe/key-in-use        # ids of rules
//	  mismatch: stripe/key-mismatch
//	  lost: look-for-it                   # id of a recipe, where there is no key
//	  about: …
//
// The rest is told (of auth, heed config check uses resign: it warns of a queue
// for what must be signed anew):
//
//	auth:
//	  - {kind: oauth2_client, place: header, name: Authorization, prefix: 'Bearer ', lifetime: 1h,
//	     lifetime_from: expires_in, refresh_early: 60s, rotates: true, single_use: revoke_all,
//	     single_flight: cluster, expired: name/token-expired, denied: name/forbidden,
//	     lockout: {failures: 5, window: 10m, for: 10m}, resign: true, clock_unit: ms, max_skew: 5m, about: …}
//	     # kinds: none static basic bearer oauth2_client oauth2_refresh session cookie_pair jwt signed
//	paging:
//	  - {kind: cursor, where: '/v1/**', size: {param: limit, default: 10, max: 100, server_lowers: true},
//	     next: $.next_cursor, end: [absent, empty], total: $.total, trust: estimate, empty_page_ends: true,
//	     frozen: true, cursor_ttl: 48h, depth: …, complete: …, checkpoint: …, deletes: …, about: …}
//	     # kinds: none link next_url cursor token offset page keyset
//	     # end: absent null empty false short_page empty_page flag status code
//	     # trust: exact estimate capped page_count unknown
//	batch:
//	  - {path: '/$batch', outer: [200, 424], items: '$.responses[*]', status: $.status, header: $.headers, body: $.body, dependents: 424}
//	stream:
//	  - {format: sse, error: 'event error', end: 'data [DONE]', about: …}      # sse ndjson chunks
//	ban_counters:
//	  - {id: bad-answers, status: [401, 403, 429], exclude: …, limit: 10000, window: 10m, key: [ip], action: …}
//	recipes:
//	  - {id: holds, request: 'GET /patrons/{id}/holds', look: an entry for the item, about: …}
//	notes:
//	  - {fact: …}                 # what fits nowhere else
//
// exchanges may stand in a profile of one's own, in the form of the golden
// files (see package golden); the built-in ones have theirs apart.
package provider
