# SPDX-License-Identifier: Apache-2.0
"""A GPU becomes unhealthy while a pod runs on it, and healthy again: other pods do not notice, and nothing is restarted."""
import re
import time

from holding import holding, processes, release
from lane_support import Lane
from scenario import HOLD, gpu_pod

XID_LOST = "79"  # fallen off the bus
XID_ECC = "48"   # a double-bit error: the card must be reset
CAUSE = {XID_LOST: "fell off the bus", XID_ECC: "uncorrectable"}
REMEDY = {XID_LOST: "systemctl reboot", XID_ECC: "nvidia-smi --gpu-reset -i GPU-"}


def run(lane: Lane, cluster) -> None:
    cluster.api.create_pod(gpu_pod("victim", 1, HOLD))
    cluster.api.create_pod(gpu_pod("healthy", 2, HOLD))
    for name in ("victim", "healthy"):
        cluster.wait_phase(name, "Running")
    held = holding(cluster)
    index = next(gpu["index"] for gpu in cluster.node.inventory()["gpus"] if gpu["uuid"] == held["victim"][0])
    before = processes()
    for xid in (XID_ECC, XID_LOST):
        becomes_unhealthy(lane, cluster, xid, index, held["victim"][0])
        told(lane, cluster, xid, held["victim"][0])
        lane.equal(f"XID {xid}: running pods go on with their GPUs", (holding(cluster), processes()), (held, before))
        becomes_healthy(lane, cluster, xid)
    release(cluster, "victim", "healthy")


def becomes_unhealthy(lane: Lane, cluster, xid: str, index: int, uuid: str) -> None:
    start = time.monotonic()
    cluster.node.inject("xid", xid, "--gpu", index)
    cluster.wait_for(f"XID {xid}: seven GPUs are left", lambda: len(cluster.allocatable()) == 7, 10, pause=0.05)
    took = time.monotonic() - start
    lane.check(f"XID {xid}: GetAllocatableResources is right within 2 s ({took:.2f})", took <= 2, f"{took:.2f} s")
    lane.check(f"XID {xid}: the unhealthy GPU is the one that is missing", uuid not in cluster.allocatable(), str(cluster.allocatable()))
    cluster.wait_for("the node shows eight and seven", lambda: cluster.count() == (8, 7), 5)


def told(lane: Lane, cluster, xid: str, uuid: str) -> None:
    """What a person with only kubectl sees. Events of an earlier scenario, of another GPU, are still there."""
    def event() -> str:
        listed = cluster.kubectl("get", "events", "--field-selector", "involvedObject.kind=Node,reason=XIDError,type=Warning", "-o", "custom-columns=M:.message")
        return next((line for line in listed.splitlines() if f"Xid {xid}:" in line and uuid in line), "")
    said = cluster.wait_for(f"kubectl get events shows XID {xid}", event, 15, pause=0.5)
    lane.check(f"XID {xid}: an Event of the node names the GPU, the cause and the remedy", CAUSE[xid] in said and f"remedy: {REMEDY[xid]}" in said, said)
    condition = cluster.wait_for("the node's condition is False", lambda: gpus_healthy(cluster, "False"), 15)
    lane.check(f"XID {xid}: the condition GPUsHealthy too", condition["reason"] == "GPUsUnusable" and uuid in condition["message"] and
               CAUSE[xid] in condition["message"] and f"remedy: {REMEDY[xid]}" in condition["message"], str(condition))
    described = cluster.kubectl("describe", "node", "gpu-node")
    lane.check(f"XID {xid}: kubectl describe node shows both", re.search(r"^ *GPUsHealthy +False .*GPUsUnusable", described, re.MULTILINE) is not None and
               re.search(rf"Warning +XIDError .*Xid {xid}:", described) is not None, described)


def gpus_healthy(cluster, status: str) -> dict | None:
    return next((c for c in cluster.api.node()["status"]["conditions"] if c["type"] == "GPUsHealthy" and c["status"] == status), None)


def becomes_healthy(lane: Lane, cluster, xid: str) -> None:
    cluster.node.inject("clear")
    start = time.monotonic()
    cluster.wait_for(f"XID {xid} cleared: eight GPUs again", lambda: len(cluster.allocatable()) == 8, 60, pause=0.1)
    print(f"       XID {xid} cleared to allocatable: {time.monotonic() - start:.1f} s")
    lane.check(f"XID {xid}: the GPU comes back without a restart", True)
    cluster.wait_for("the node's condition is True again", lambda: gpus_healthy(cluster, "True"), 15)
