// Package mask decides what may be told of a URL, a header, a body or an
// error. Nothing else in heed writes such a thing into a log, an error, a
// metric or a page.
//
// A URL is told as endpoint and path template: segments that carry an
// identifier become {id}, and the query is dropped. Types whose values are
// secret print as a mask whatever verb or encoder is used.
//
// The package is pure.
package mask

// Path is the path of a request. However it is printed, it shows its template.
type Path string

// Secret is a string that is never printed.
type Secret string
