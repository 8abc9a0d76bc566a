//go:build !race

package gateway

const racing = false
