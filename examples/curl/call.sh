#!/bin/sh
# curl behind heed: only the base URL is another, and no --retry is needed.
#
#     go run ./cmd/heed up
#     sh examples/curl/call.sh hello
set -eu
base=${HEED_BASE:-http://127.0.0.1:8642/demo}
exec curl --silent --show-error --fail-with-body --header 'Heed-Budget: 30s' --dump-header - "$base/${1:-curl}"
