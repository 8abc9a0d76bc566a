"""tenacity around requests as heed check meets it.

    heed check --lines -- python3 tenacity_requests.py best
"""
from importlib.metadata import version

import requests
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, stop_any, wait_random_exponential

from lines import BEST, repeatable, retry_after, serve

session = requests.Session()
backoff = wait_random_exponential(multiplier=0.3, max=2)


def wait(state):
    """The wait of tenacity, or what Retry-After says if that is longer."""
    response = getattr(state.outcome.exception(), "response", None)
    return max(backoff(state), retry_after(response.headers) if response is not None else 0)


def passing(error):
    response = getattr(error, "response", None)
    return isinstance(error, requests.RequestException) and (response is None or response.status_code in (408, 425, 429, 500, 502, 503, 504))


def call(task):
    response = session.request(task["method"], task["url"], headers=task["header"], data=task["body"], timeout=3 if BEST else None)
    response.raise_for_status()
    return response.status_code


def do(task):
    if not BEST:  # what @retry does: for ever, without a pause
        return Retrying()(call, task)
    if not repeatable(task["method"], task["header"]):
        return call(task)
    stop = stop_any(stop_after_attempt(8), stop_after_delay(task["deadline_ms"] / 1000 or 60))
    return Retrying(wait=wait, stop=stop, retry=retry_if_exception(passing), reraise=True)(call, task)


serve("tenacity (around requests)", version("tenacity"), ["retry", "keyed"] + (["timeout=3s"] if BEST else []), do)
