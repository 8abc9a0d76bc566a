#!/usr/bin/env bash
# Grades the clients of docs/scoreboard.md again. What is missing is installed
# first: packages through apt-get, Node clients through npm, Go clients through the
# module proxy. Takes half an hour, more on a busy machine.
#
#	./run.sh                all clients
#	./run.sh curl httpx     these only; the others stay as they are
#	./run.sh -render        no client; the pages are written again
set -euo pipefail
cd "$(dirname "$0")"
bin=$PWD/out/bin
mkdir -p "$bin"

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# packages installs what Debian has: the commands, and the Python clients.
packages() {
	local missing=() pair name
	for pair in curl:curl wget:wget jq:jq node:nodejs npm:npm; do
		command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
	done
	for name in requests urllib3 tenacity httpx; do
		/usr/bin/python3 -c "import $name" 2>/dev/null || missing+=("python3-$name")
	done
	[ ${#missing[@]} -eq 0 ] && return
	if ! command -v apt-get >/dev/null; then
		echo "missing: ${missing[*]}; install them with the package manager of this system" >&2
		return 1
	fi
	as_root apt-get update -q >&2
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" >&2
}

packages
[ -d ../examples/check/node/node_modules ] || (cd ../examples/check/node && npm ci --ignore-scripts --no-audit --no-fund >&2)
CGO_ENABLED=0 go build -C .. -o "$bin/" ./cmd/heed
mv "$bin/heed" "$bin/heed.tool"
CGO_ENABLED=0 go build -C .. -o "$bin/heed" ./examples/check/heed
CGO_ENABLED=0 go build -C ../examples/check/go -o "$bin/" ./...
go build -o "$bin/scoreboard" .
exec "$bin/scoreboard" -bin "$bin" "$@"
