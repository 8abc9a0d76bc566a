// Package drift tells how far a simulated provider has drifted from the real
// one.
//
// A Recorder is a proxy in front of the real provider. It hands everything
// through and keeps of each exchange what has no secret in it: method, status,
// the names of paths, parameters, header fields and body fields, and in place of
// every value its Shape: string, date-time, integer, a list of these. A value
// that an earlier answer had, such as an id, becomes a reference to the place
// where it stood. What cannot be told to be a name is taken for a value: a
// segment of a path that no route has, a key of a body that no schema would
// have, that stood in the path, or that is the caller's own word (metadata,
// labels, annotations).
//
// Compare replays a recording against a pack of the simulator. It makes up
// values for the shapes and follows the references, so that what was created in
// the recording is created in the pack and found by the next request. It then
// tells where status, header or shape of the answers differ.
//
// Limits: bodies of up to 1 MiB are looked at. References are followed in JSON.
// A request whose values mean something, such as a currency, may be refused by
// the pack when they are made up; Options.Values gives them, and what could
// still not be compared is told apart from what differs.
package drift
