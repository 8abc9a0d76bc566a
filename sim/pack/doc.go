// Package pack lists the simulated providers that come with heed, each a
// folder below it with an exported function Pack() sim.Pack, or with one per
// pack where several share their code: llm has Anthropic and OpenAI.
//
// Three folders are no packs but help to write them: stock has resources that
// exist before anybody made them, graph reads and answers GraphQL, packtest is
// for tests.
//
// # Writing a pack
//
// A pack is data and functions; the API brings state, time, chance, steps,
// faults, limits, idempotency, ledger and journal. So a pack says only what is
// particular to its provider. The Example of this package is a whole one,
// stripe is the model for a large one.
//
//  1. Make sim/pack/NAME with a package doc that says what of the provider is
//     there, and where each habit is documented. Add NAME.Pack to the table in
//     pack.go. In a world of several packs the first that has a path gets the
//     request, unless a host or /NAME/ says otherwise; paths that begin
//     with a name in braces are found by host and /NAME/ only. Access says which
//     credential is taken.
//  2. Operations: Route is a method and a path pattern in which {id} matches a
//     segment, {id}.json a part of one, {rest...} what follows. Name is the
//     logical name that steps and journal use. APIs that tell operations apart
//     by query or body (WFS, GraphQL) give several operations one Route and a
//     When each. The first that matches counts.
//  3. Links: x.URL(path) is the address of a path of the pack as the caller
//     reaches it, and a Location may be the bare path. No pack puts an address
//     together from the request: what packtest serves lies in a case, and an
//     answer with a link that leaves it fails the test.
//  4. Do answers with sim.JSON, sim.Text or an Answer. It runs alone in its
//     case, so it needs no lock and must not wait: no sleep, no I/O, no clock
//     but x.Now, no chance but x.Draw, no id but x.ID, no variable that
//     survives the call. What takes time is planned with x.After.
//  5. State: sim.Rows[T](x, "kind") is a table of this pack in this case. What
//     one call puts, the next one gets. A stock.Stock lies over such a table and
//     has resources from the start, made from their number when they are asked
//     for.
//  6. Effects: call x.Effect where something is really done that a client
//     would regret to do twice. A subject lets the ledger tell repeats.
//  7. Keyed operations honour the idempotency key by themselves. Dialect.Keys
//     says which header, how long, which answers are kept.
//  8. Errors: return x.Refuse(sim.Refusal{Kind: …}) wherever the provider's
//     error can be named by a Kind, and write Dialect.Refuse, which must have an
//     answer for every Kind (call sim.Plain for what the provider has no habit
//     for). The steps 429, 503, throttle, expire and the refusals of the API
//     itself go through it too: r.StatusOr(d) is the status that a step asks
//     for. For Unknown it must name r.Operations, so that a person sees what
//     there is. Refuse, Quota, Envelope, When and Credential may run beside
//     other requests of the case: they look at the request and at x.Draw, x.ID
//     and x.Now only, never at rows. Do, CostOf, Authorize, Expire and what
//     x.After runs have the case to themselves.
//  9. Limits: rate.Limit values, with the provider's own names. Dialect.Quota
//     turns what is left into its headers; an empty function tells nothing.
//     Dialect.Tell does so with the Exchange at hand, for headers that tell an
//     instant (rate.Told.End) or not every caller. x.Left tells a quota in a
//     body. x.Spend takes, or gives back, what is known afterwards only. The
//     scope Custom counts apart by what Pack.LimitBy returns.
//  10. Authorize returns a *Refusal or nil; Credential says whose request it is;
//     Expire makes that credential invalid. Tokens that a login hands out are
//     rows like all else: keep when they end by x.Now.
//  11. Golden: name the file of provider/golden when it is not called as the
//     pack. Its answers are served by the step golden(name) without any code.
//  12. Streams: Answer.Pace{Split: "\n\n", Every: …} sends server-sent events
//     one by one; every fault works on them as on a whole body. Answer.More is
//     for header fields in several lines; an empty Content-Type is left out.
//  13. What changes by itself, by being looked at or by what is done to it is a
//     sim.Life, data like the rest, and a sim.Stage in the resource: Begin where
//     it is made, Poll where it is read, Fire where something is done, and a
//     Conflict when Fire says no. sim's jobs.go is the model.
//  14. Webhooks: call x.Emit where the provider would tell of an event, also when
//     nobody listens. Pack.Webhooks says how it signs, how long it waits and
//     repeats. An operation by which users register a URL calls x.Subscribe.
//     Webhooks.Events lists what is ever emitted.
//  15. Pack.Script gives a request its step where a client may plan failures;
//     Pack.MaxBody is for those that take more than 1 MiB.
//
// Test a pack by packtest.Serve, which puts it behind a real server and on a
// clock that stands still until Client.Advance moves it: one fact per test, the
// traps of the provider first. packtest.Alike holds the pack's own answers to
// the golden ones. Every pack of the table is held to the facts in pack_test.go.
package pack
