package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the release build; otherwise the build information tells.
var version string

type versionCmd struct{}

func (versionCmd) Run(sh *shell) error {
	_, err := fmt.Fprintf(sh.out, "heed %s %s %s/%s\n", versionOf(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// versionOf is the module's version, or the commit it was built from.
func versionOf() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}
