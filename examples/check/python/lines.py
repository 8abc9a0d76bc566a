"""What the Python clients of this folder share: heed check asks for operations
on stdin, one JSON object a line, and is told what came of each.

A client runs with the settings that its documentation advises (best) or with
those that it has when nothing is set (default): the first argument says which.
"""
import json
import sys
import threading

BEST = sys.argv[1:2] == ["best"]


def repeatable(method, header):
    """Tell whether a request may be sent twice (RFC 9110, section 9.2.2)."""
    return method not in ("POST", "PATCH") or "Idempotency-Key" in header


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
