//go:build race

package heed_test

const raced = true
