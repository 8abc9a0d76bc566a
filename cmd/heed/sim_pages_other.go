//go:build !linux

package main

// forgetStart is for Linux only.
func forgetStart() {}
