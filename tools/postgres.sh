#!/usr/bin/env bash
# Starts a private Postgres, runs a command with its address in
# HEED_TEST_POSTGRES, and stops it again:
#
#   tools/postgres.sh go test ./internal/queue/postgres
#
# The cluster lies in a temporary directory, listens on a free port of the
# loopback and wants a password. fsync is on, as it is by default: what is
# measured against it is what a disk does. HEED_TEST_POSTGRES_OPTIONS is handed to the server, for
# instance "-c max_connections=5".
set -euo pipefail

if [ $# -eq 0 ]; then
	sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2
	exit 2
fi

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# programs prints the folder of the newest server on this machine.
programs() {
	local initdb
	initdb=$(command -v initdb || find /usr/lib/postgresql /usr/local/pgsql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
	[ -z "$initdb" ] || dirname "$(readlink -f "$initdb")"
}

# install adds Debian's package without the cluster that it makes by default.
install() {
	command -v apt-get >/dev/null || {
		echo "no Postgres is installed: add it with the package manager of this system" >&2
		return 1
	}
	as_root mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.d/heed.conf >/dev/null
	as_root apt-get update >&2 &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql >&2
}

bin=$(programs)
if [ -z "$bin" ]; then
	install
	bin=$(programs)
fi

# The server refuses to run as root.
user=()
[ "$(id -u)" -ne 0 ] || user=(setpriv --reuid=postgres --regid=postgres --clear-groups)

home=$(mktemp -d)
server=''
stop() {
	trap - EXIT INT TERM
	if [ -n "$server" ]; then
		kill -INT "$server" 2>/dev/null || true # ends sessions, then writes everything out
		wait "$server" 2>/dev/null || true
	fi
	rm -rf "$home"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

chmod 711 "$home"
[ "$(id -u)" -ne 0 ] || chown postgres: "$home"
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
"${user[@]}" sh -c 'umask 077; printf "%s\n" "$1" >"$2"' sh "$password" "$home/password"
"${user[@]}" "$bin/initdb" --pgdata="$home/data" --username=heed --pwfile="$home/password" --auth=scram-sha-256 \
	--encoding=UTF8 --locale=C >"$home/log" 2>&1 || {
	cat "$home/log" >&2
	exit 1
}

# begin starts the server on one port and tells whether it answers there.
begin() {
	# shellcheck disable=SC2086 # the options are words
	"${user[@]}" "$bin/postgres" -D "$home/data" -p "$1" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
		-c max_wal_size=4GB ${HEED_TEST_POSTGRES_OPTIONS:-} >>"$home/log" 2>&1 </dev/null &
	server=$!
	for _ in $(seq 300); do
		if ! kill -0 "$server" 2>/dev/null; then
			wait "$server" || true
			server=''
			return 1
		fi
		# The eighth line of this file says "ready" once it answers.
		if grep -qs '^ready' "$home/data/postmaster.pid"; then return; fi
		sleep 0.1
	done
	return 1
}

for _ in 1 2 3 4 5; do
	port=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))
	if begin "$port"; then break; fi
done
if [ -z "$server" ]; then
	cat "$home/log" >&2
	echo 'the private Postgres does not start; its log is above' >&2
	exit 1
fi

status=0
HEED_TEST_POSTGRES="postgres://heed:$password@127.0.0.1:$port/postgres?sslmode=disable" "$@" || status=$?
exit "$status"
