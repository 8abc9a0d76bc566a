// Package toxiproxy shows heed on a network that breaks: a proxy that delays,
// squeezes, cuts and resets stands between it and the simulator. Run it with
//
//	go test -v ./examples/toxiproxy
//
// The simulator's own faults are told to it in steps and are part of its
// answers; a proxy breaks the connection whatever goes over it, and works
// before a provider that cannot be told anything.
package toxiproxy
