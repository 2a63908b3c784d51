# SPDX-License-Identifier: Apache-2.0
"""A GPU goes to virtual machines and comes back, with a real kubelet: a pod keeps it and is named, --drain waits for the pod, no other
pod gets it meanwhile, and the node shows one GPU less until it is released."""
import json
import subprocess
import time

from holding import holding, release
from lane_support import Lane
from observer import Observer
from scenario import HOLD, gpu_pod


def run(lane: Lane, cluster) -> None:
    observer = Observer()
    observer.start()
    cluster.api.create_pod(gpu_pod("keeper", 1, HOLD))
    cluster.wait_phase("keeper", "Running")
    uuid = holding(cluster)["keeper"][0]
    gpu = next(card["pci"] for card in cluster.node.inventory()["gpus"] if card["uuid"] == uuid)
    try:
        a_pod_keeps_its_gpu(lane, cluster, gpu)
        drain_waits_for_the_pod(lane, cluster, gpu, uuid)
        nobody_else_gets_it(lane, cluster, gpu, uuid)
        it_comes_back(lane, cluster, gpu, uuid)
    finally:
        vfio(cluster, "release", gpu)  # if a step failed: the next scenario wants eight GPUs
    observer.end()
    lane.equal("no GPU was in two containers at once", observer.doubles, [])


def argv(cluster, *words: str) -> list[str]:
    return [str(cluster.lane.bin / "gantry"), "vfio", *words, "--root", str(cluster.node.root)]


def vfio(cluster, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run(argv(cluster, *words), capture_output=True, text=True, check=False, timeout=120)


def owner(cluster, gpu: str) -> str:
    listed = json.loads(vfio(cluster, "list", "--json").stdout)
    return next(one["owner"] for one in listed["gpus"] if one["address"] == gpu)


def shows(cluster, count: int) -> None:
    cluster.wait_for(f"the node shows {count} GPUs", lambda: cluster.count() == (count, count), 20)


def a_pod_keeps_its_gpu(lane: Lane, cluster, gpu: str) -> None:
    refused = vfio(cluster, "bind", gpu)
    lane.check("a pod keeps its GPU, and is named", refused.returncode == 1 and "held by pod default/keeper" in refused.stderr, refused.stderr)
    shows(cluster, 8)
    lane.check("the pod still runs", cluster.phase("keeper") == "Running")


def drain_waits_for_the_pod(lane: Lane, cluster, gpu: str, uuid: str) -> None:
    bind = subprocess.Popen(argv(cluster, "bind", gpu, "--drain", "--timeout", "100"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        cluster.wait_for("the GPU is withdrawn", lambda: uuid not in cluster.allocatable(), 20)
        shows(cluster, 7)
        time.sleep(1)
        lane.check("--drain waits: the pod still runs with its GPU", bind.poll() is None and holding(cluster).get("keeper") == [uuid], str(holding(cluster)))
        release(cluster, "keeper")
        said, _ = bind.communicate(timeout=100)
    finally:
        bind.kill()
    lane.check("when the pod has gone the GPU is bound", bind.returncode == 0 and "bound for virtual machines" in said, said)
    lane.equal("it belongs to virtual machines", owner(cluster, gpu), "vm")


def nobody_else_gets_it(lane: Lane, cluster, gpu: str, uuid: str) -> None:
    cluster.api.create_pod(gpu_pod("seven", 7, ["sh", "-c", "nvidia-smi -L"]))
    cluster.wait_phase("seven", "Succeeded")
    seen = cluster.api.log("seven")
    lane.check("a pod gets the seven others", seen.count("UUID: ") == 7 and uuid not in seen, seen)
    release(cluster, "seven")
    cluster.start_agent()
    cluster.restart("kubelet")
    cluster.wait_for("agent and kubelet are back", lambda: len(cluster.allocatable()) == 7, 60)
    shows(cluster, 7)
    lane.check("after new starts of agent and kubelet it is still not offered", uuid not in cluster.allocatable() and owner(cluster, gpu) == "vm")


def it_comes_back(lane: Lane, cluster, gpu: str, uuid: str) -> None:
    released = vfio(cluster, "release", gpu)
    lane.check("it is released", released.returncode == 0, released.stdout + released.stderr)
    cluster.wait_for("the kubelet has it again", lambda: uuid in cluster.allocatable(), 20)
    shows(cluster, 8)
    lane.equal("it belongs to the device plugin", owner(cluster, gpu), "plugin")
    cluster.api.create_pod(gpu_pod("eight", 8, ["sh", "-c", "nvidia-smi -L && gantry-vector-add"]))
    cluster.wait_phase("eight", "Succeeded")
    log = cluster.api.log("eight")
    lane.check("a pod computes on all eight", uuid in log and "Test PASSED" in log, log)
    release(cluster, "eight")
