#!/usr/bin/env bash
# Runs a suite that others wrote against the simulator: the retry conformance
# test in Google's own Go client for Cloud Storage, with `heed sim --pack gcs`
# as its provider. Nothing of that module is kept: it is fetched, copied to a
# temporary directory, compiled and run there.
#
#     foreign/gcs.sh           builds and runs; some minutes the first time
#
# FOREIGN_DIR names a directory that keeps the compiled suite between runs.
# Fails when a subtest fails or when fewer pass than are known to.
set -euo pipefail
cd "$(dirname "$0")/.."

module=cloud.google.com/go/storage version=v1.70.0
# How many subtests pass of this version. All that the client runs over HTTP do,
# so one less means that something was lost.
retries=337 operations=55

dir=$(mktemp -d)
sim=''
finish() {
	if [ -n "$sim" ]; then
		kill "$sim" 2>/dev/null || true
		wait "$sim" 2>/dev/null || true
	fi
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

say() { printf '   %s\n' "$*"; }

# compile makes the directory suite: the module, and its tests as suite.test. They
# read files beside them.
compile() {
	say "fetching $module@$version"
	mkdir "$dir/fetch"
	printf 'module fetch\n\ngo 1.26\n' >"$dir/fetch/go.mod"
	local source
	source=$(cd "$dir/fetch" && GOFLAGS=-mod=mod go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
	rm -rf "$suite"
	cp -r "$source" "$suite"
	chmod -R u+w "$suite" # the module cache is read-only
	say 'compiling its tests'
	(cd "$suite" && GOFLAGS=-mod=mod go test -c -o suite.test . 2>"$dir/compile.log") || {
		cat "$dir/compile.log" >&2
		return 1
	}
}

# serve starts the simulator of this tree on a free port and sets host.
serve() {
	say 'starting heed sim --pack gcs'
	go build -o "$dir/heed" ./cmd/heed
	"$dir/heed" sim --pack gcs --listen 127.0.0.1:0 >"$dir/sim.log" 2>&1 &
	sim=$!
	for _ in $(seq 100); do
		host=$(sed -n 's#.*\(http://127\.0\.0\.1:[0-9]*\).*#\1#p' "$dir/sim.log" | head -n 1)
		if [ -n "$host" ]; then return; fi
		kill -0 "$sim" 2>/dev/null || break
		sleep 0.1
	done
	echo 'the simulator did not start:' >&2
	cat "$dir/sim.log" >&2
	return 1
}

# progress copies what matters of the output of go test and counts the
# subtests whose names begin with http, at any depth that has none below it.
progress() {
	awk -v name="$1" '
		/^ *--- (PASS|FAIL|SKIP): [^ ]*\/http/ {
			sub(":", "", $2); seen[$2]++; n++
			if (n % 50 == 0) { printf "   %s: %d done, %d failed\n", name, n, seen["FAIL"]; fflush() }
		}
		/^ *--- FAIL/ { print; fflush() }
		/^panic:|^ +[a-z_]+_test\.go:[0-9]+:/ { last = $0; if (last !~ /No tests for operation|not supported|explicitly skipped/) print }
		END { printf "%d %d %d\n", seen["PASS"], seen["FAIL"], seen["SKIP"] > counts }
	' counts="$dir/counts" -
}

# run NAME LEAST PATTERN runs a part of the suite and judges it.
run() {
	local name=$1 least=$2 status=0 passed failed skipped
	# The suite asks for the address of a gRPC service too before it runs its
	# tests of single operations; of those only the ones over HTTP are run.
	(cd "$suite" && STORAGE_EMULATOR_HOST=$host STORAGE_EMULATOR_HOST_GRPC=127.0.0.1:1 \
		./suite.test -test.short -test.v -test.timeout 15m -test.run "$3") 2>&1 | progress "$name" || status=$?
	read -r passed failed skipped <"$dir/counts"
	printf '   %s: %d passed, %d failed, %d skipped (at least %d must pass)\n' "$name" "$passed" "$failed" "$skipped" "$least"
	[ "$status" -eq 0 ] && [ "$failed" -eq 0 ] && [ "$passed" -ge "$least" ]
}

keep=${FOREIGN_DIR:-$dir}
mkdir -p "$keep"
suite=$(cd "$keep" && pwd)/gcs-$version
if [ ! -x "$suite/suite.test" ]; then compile; fi
serve

run 'retry conformance' "$retries" '^TestRetryConformance$/^http'

# What single operations do, without the tests of gRPC alone, of appendable
# objects, which the client has over gRPC only, and of deadlines of 100 ms,
# which a busy machine misses by itself.
run 'single operations' "$operations" \
	'^Test(Create|Delete|Get|Update|List|Rewrite|Compose|DefaultObjectACL|ObjectACL|HMACKey|LockBucket|OpenReader|NewRangeReaderRemain|OpenWriter|WriterProgress|WriterClose|WholeObject|BucketConditions|ObjectConditions).*Emulated$/^http'
