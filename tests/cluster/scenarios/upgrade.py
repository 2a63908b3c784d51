# SPDX-License-Identifier: Apache-2.0
"""A second agent takes over from the first: the kubelet must not see a gap, and no pod is rejected meanwhile."""
import time

from holding import hold, processes, release, still_held, takes_the_rest
from lane_support import Lane
from scenario import gpu_pod


def run(lane: Lane, cluster) -> None:
    held, before = hold(lane, cluster), processes()
    watch = cluster.watch_allocatable()
    for count in range(3):
        cluster.api.create_pod(gpu_pod(f"meanwhile-{count}", 1, ["sh", "-c", "nvidia-smi -L"]))
        cluster.upgrade_agent()
        time.sleep(1.5)
    said = [(line["counts"].get("nvidia.com/gpu", 0), line["answered"]) for line in watch.end()]
    lane.equal("three rolling upgrades of the agent: GetAllocatableResources never drops", said, [(8, True)])
    for count in range(3):
        cluster.wait_phase(f"meanwhile-{count}", "Succeeded", 30)
    lane.check("three rolling upgrades: no pod is rejected", True)
    still_held(lane, cluster, "rolling upgrade", held)
    lane.equal("rolling upgrade: their containers go on", processes(), before)
    release(cluster, *(f"meanwhile-{count}" for count in range(3)))
    takes_the_rest(lane, cluster, "rolling upgrade", held)
    release(cluster)
