#!/usr/bin/env bash
# curl in a script as heed check meets it: operations come on stdin, one JSON
# object a line, and what came of each is told on stdout.
#
#	heed check --lines -- bash curl.sh best
setting=${1:-default}
claims='"retry","write","header","parallel","keyed"'
if [ "$setting" = best ]; then claims+=',"deadline","timeout=3s"'; else claims=${claims#'"retry",'}; claims=${claims%',"keyed"'}; fi
printf '{"name":"curl in a script","version":"%s","claims":[%s]}\n' "$(curl --version | awk 'NR == 1 {print $2}')" "$claims"

dir=$(mktemp -d) # a file is what curl can empty before it tries again
trap 'rm -rf "$dir"' EXIT

make() { # make ID METHOD URL KEYED DEADLINE BODY HEADER…
	local id=$1 method=$2 url=$3 keyed=$4 limit=$5 body=$6 status args=()
	shift 6
	for field; do args+=(-H "$field"); done
	[ -z "$body" ] || args+=(--data-binary @-)
	if [ "$setting" = best ]; then
		args+=(--fail --max-time 3)
		# a write without a key is sent once
		case $method:$keyed in POST:false | PATCH:false) ;; *) args+=(--retry 5 --retry-max-time 60) ;; esac
	fi
	status=$(printf %s "$body" | timeout "$limit" curl -sS -o "$dir/$id" -w '%{http_code}' -X "$method" "${args[@]}" "$url") &&
		[ "${status:0:1}" = 2 ] && ok=true || ok=false
	printf '{"id":"%s","ok":%s,"status":%d}\n' "$id" "$ok" "$((10#${status:-0}))"
}

while IFS= read -r line; do
	mapfile -d '' -t task < <(jq -j '[.id, .method, .url, (.header["Idempotency-Key"] != null | tostring),
		((.deadline_ms // 60000) / 1000 | tostring), .body // ""] + [.header // {} | to_entries[] | .key + ": " + .value]
		| map(. + "\u0000") | add' <<<"$line")
	make "${task[@]}" &
done
wait
