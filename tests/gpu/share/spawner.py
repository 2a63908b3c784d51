# SPDX-License-Identifier: Apache-2.0
"""spawner.py PROGRAM: for each line on standard input runs it, and tells how many milliseconds it took, in all and by its own account."""
import json
import subprocess
import sys
import time

print(json.dumps({"ready": True}), flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    ran = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    whole = (time.perf_counter() - start) * 1000
    parts = json.loads(ran.stdout)
    print(json.dumps({"ms": whole, "rest": whole - sum(parts.values()), **parts}), flush=True)
