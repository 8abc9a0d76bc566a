//go:build race

package check_test

const raced = true
