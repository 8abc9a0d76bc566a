"""What the Python clients of this folder share: heed check asks for operations
on stdin, one JSON object a line, and is told what came of each.

A client runs with the settings that its documentation advises (best) or with
those that it has when nothing is set (default): the first argument says which.
"""
import json
import sys
import threading
from datetime import timezone
from email.utils import parsedate_to_datetime

BEST = sys.argv[1:2] == ["best"]


def repeatable(method, header):
    """Tell whether a request may be sent twice (RFC 9110, section 9.2.2)."""
    return method not in ("POST", "PATCH") or "Idempotency-Key" in header


def retry_after(header):
    """Return what a response asks its client to wait, in seconds (RFC 9110, section 10.2.3); 0 where it says nothing of use."""
    value = header.get("Retry-After", "")
    first = value.split(",")[0].strip()  # of two lines
    if first.isdigit():
        return min(int(first), 365 * 86400)
    try:
        at, now = (parsedate_to_datetime(v).replace(tzinfo=timezone.utc) for v in (value, header.get("Date", "")))
    except ValueError:
        return 0
    return max(0, (at - now).total_seconds())


def serve(name, version, claims, do):
    """Make operations until stdin ends. do(task) returns a status, or raises."""
    lock = threading.Lock()

    def say(what):
        with lock:
            print(json.dumps(what), flush=True)

    def make(task):
        try:
            status = do(task)
            say({"id": task["id"], "ok": 200 <= status < 300, "status": status})
        except Exception as e:
            say({"id": task["id"], "ok": False, "error": str(e)})

    say({"name": name, "version": version, "claims": claims + ["write", "header"]})
    for line in sys.stdin:
        task = json.loads(line)
        task.setdefault("header", {})
        task.setdefault("deadline_ms", 0)
        task["body"] = task.get("body", "").encode() or None
        threading.Thread(target=make, args=(task,), daemon=True).start()
