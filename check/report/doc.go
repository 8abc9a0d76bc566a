// Package report writes what a check found: for a terminal, for programs (JSON,
// JUnit), as a badge, and as one HTML file with a timeline per case.
//
// Every function writes the whole of its form and returns the first error of
// the writer. Nothing of it is fetched from anywhere: the HTML file has its
// style and its pictures within.
package report
