"""requests with the Retry of urllib3 as heed check meets it.

    heed check --lines -- python3 requests_urllib3.py best
"""
import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from lines import BEST, serve

session = requests.Session()
timeout = None
claims = []
if BEST:
    timeout = 3
    claims = ["retry", "timeout=3s"]
    retry = Retry(total=5, backoff_factor=0.3, status_forcelist=[408, 425, 429, 500, 502, 503, 504])
    session.mount("http://", HTTPAdapter(max_retries=retry))
    session.mount("https://", HTTPAdapter(max_retries=retry))


def do(task):
    response = session.request(task["method"], task["url"], headers=task["header"], data=task["body"], timeout=timeout)
    response.raise_for_status()
    return response.status_code


serve("requests + urllib3", f"{requests.__version__} + {urllib3.__version__}", claims, do)
