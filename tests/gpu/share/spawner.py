# SPDX-License-Identifier: Apache-2.0
"""spawner.py PROGRAM: for each line on standard input runs it, and tells how many milliseconds it took."""
import json
import subprocess
import sys
import time

print(json.dumps({"ready": True}), flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    status = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
    print(json.dumps({"ms": (time.perf_counter() - start) * 1000, "status": status}), flush=True)
