"""One step of a scheduled job: make the call, or say when to come back.

    python3 examples/schedule/poll.py sierra/v6/bibs

A job orchestrator should not hold a worker asleep for ten minutes because an
API said so. `heed call` ends with an exit code that tells what happened, and
with the instant from which on another try makes sense. HEED names the program.
"""

import json
import os
import subprocess
import sys

TRY_LATER, OUTAGE = 75, 69

run = subprocess.run(
    [os.environ.get("HEED", "heed"), "call", *sys.argv[1:], "--json", "--budget", "20s"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
)
if run.returncode == 0:
    sys.stdout.buffer.write(run.stdout)  # the work would be done here
elif run.returncode in (TRY_LATER, OUTAGE):
    report = json.loads(run.stderr.splitlines()[-1])
    # Here the orchestrator would be told: not failed, to be run again then.
    print("reschedule at", report.get("retry_at", "the usual interval"))
else:
    sys.exit(run.stderr.decode())
