# SPDX-License-Identifier: Apache-2.0
"""A GPU falls ill while a pod runs on it, and gets well again: the others do not notice, and nobody restarts anything."""
import time

from holding import holding, processes, release
from lane import Lane
from scenario import HOLD, gpu_pod

XID_LOST = "79"  # fallen off the bus
XID_ECC = "48"   # a double-bit error: the card must be reset


def run(lane: Lane, cluster) -> None:
    cluster.api.create_pod(gpu_pod("victim", 1, HOLD))
    cluster.api.create_pod(gpu_pod("healthy", 2, HOLD))
    for name in ("victim", "healthy"):
        cluster.wait_phase(name, "Running")
    held = holding(cluster)
    index = next(gpu["index"] for gpu in cluster.node.inventory()["gpus"] if gpu["uuid"] == held["victim"][0])
    before = processes()
    for xid in (XID_ECC, XID_LOST):
        falls_ill(lane, cluster, xid, index, held["victim"][0])
        lane.equal(f"XID {xid}: running pods go on with their GPUs", (holding(cluster), processes()), (held, before))
        gets_well(lane, cluster, xid)
    release(cluster, "victim", "healthy")


def falls_ill(lane: Lane, cluster, xid: str, index: int, uuid: str) -> None:
    start = time.monotonic()
    cluster.node.inject("xid", xid, "--gpu", index)
    cluster.wait_for(f"XID {xid}: seven GPUs are left", lambda: len(cluster.allocatable()) == 7, 10, pause=0.05)
    took = time.monotonic() - start
    lane.check(f"XID {xid}: GetAllocatableResources is right within 2 s ({took:.2f})", took <= 2, f"{took:.2f} s")
    lane.check(f"XID {xid}: it is the sick one that is missing", uuid not in cluster.allocatable(), str(cluster.allocatable()))
    cluster.wait_for("the node shows eight and seven", lambda: cluster.count() == (8, 7), 5)


def gets_well(lane: Lane, cluster, xid: str) -> None:
    cluster.node.inject("clear")
    start = time.monotonic()
    cluster.wait_for(f"XID {xid} cleared: eight GPUs again", lambda: len(cluster.allocatable()) == 8, 60, pause=0.1)
    print(f"       XID {xid} cleared to allocatable: {time.monotonic() - start:.1f} s")
    lane.check(f"XID {xid}: the GPU comes back without a restart", True)
