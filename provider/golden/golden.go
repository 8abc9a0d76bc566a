// Package golden holds, per profile, exchanges that show the provider's
// dialect: a request, the answer to it, and what that meant.
//
// It is data only, so that whoever plays a provider can send the answers and
// whoever judges answers can be held to the meanings, neither knowing the
// other. All bodies are minimal forms of our own: the names of the fields are
// the provider's, the texts are shortened.
package golden

import "embed"

// Files holds one NAME.yaml per profile: a list exchanges of name, request
// (method, path), response (status, header, body) and expect (class, executed,
// retry, scope, wait, rule).
//
//go:embed *.yaml
var Files embed.FS
