"""httpx as heed check meets it. It repeats nothing but connecting, and says so.

    heed check --lines -- python3 httpx_client.py best
"""
import httpx

from lines import BEST, serve

client = httpx.Client()
claims = ["parallel", "session"]
if BEST:
    limits = httpx.Limits(max_connections=8)
    client = httpx.Client(transport=httpx.HTTPTransport(retries=5, limits=limits), timeout=httpx.Timeout(3, pool=10))
    claims += ["concurrency=8"]


def do(task):
    response = client.request(task["method"], task["url"], headers=task["header"], content=task["body"])
    response.raise_for_status()
    return response.status_code


serve("httpx", httpx.__version__, claims, do)
