#!/usr/bin/env bash
# Runs a fleet that knows nothing of the limit against the limiters of nginx and
# HAProxy, installed from Debian's packages if missing:
#
#     foreign/limiters.sh      a minute
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin

for want in 'nginx nginx-light' 'haproxy haproxy'; do
	read -r program package <<<"$want"
	command -v "$program" >/dev/null && continue
	sudo=''
	[ "$(id -u)" -eq 0 ] || sudo='sudo -n'
	$sudo apt-get update >&2
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package" >&2
done

HEED_FOREIGN=1 go test -count=1 -v -timeout 10m ./foreign
