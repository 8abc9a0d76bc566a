"""A Python program behind heed: only the base URL is another.

    go run ./cmd/heed up
    python3 examples/python/call.py hello

With requests or httpx it is the same: the base URL is all there is to change.
"""

import json
import os
import sys
import urllib.error
import urllib.request

BASE = os.environ.get("HEED_BASE", "http://127.0.0.1:8642/demo")


def get(path):
    request = urllib.request.Request(
        f"{BASE}/{path}",
        # Give up after 30 s. heed then answers 504 and says when to try again.
        headers={"Heed-Budget": "30s"},
    )
    try:
        # The client's own timeout is longer than the budget: heed ends the call.
        with urllib.request.urlopen(request, timeout=40) as response:
            return json.load(response), response.headers
    except urllib.error.HTTPError as error:
        if error.headers.get("Heed-Origin") == "gateway":
            problem = json.load(error)
            sys.exit(f"heed: {problem['title']}; retry after {error.headers.get('Retry-After', 'some time')} s")
        raise


answer, headers = get(sys.argv[1] if len(sys.argv) > 1 else "python")
print(answer["message"])
print("attempts:", headers["Heed-Attempts"], file=sys.stderr)
